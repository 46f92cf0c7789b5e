"""
Tests that packages from PyPI bring, bare and under the preload: each test ends the same, but for those that
suite_differences.toml lists and explains. docs/package-suites.md shows what came out: `make suite-doc`.

TARE_SUITE_PYTHON=3.12.1 chooses the interpreter. Those that need torch or numpy run on the tests' own alone.
"""

import functools
import os
import subprocess
import sys

import pytest
from conftest import PROG, PYTHONS, ROOT
from suites import check_suite, run_suite

REQUIREMENTS = "tests/requirements-suites.txt"

# {name: (arguments of pytest, environment)}
ANYWHERE = {
    "greenlet": (["--pyargs", "greenlet.tests", "-k", "not TestLeaks"], {"GREENLET_SKIP_LEAKCHECKS": 1}),
    "trio": (
        ["--pyargs", "trio._core._tests", "trio._tests", "-p", "trio._tests.pytest_plugin"]
        + [f"--ignore-glob=/*/{name}*" for name in ("test_dtls", "test_ssl", "test_highlevel_ssl")]
        + [f"--ignore-glob=/*/{name}*" for name in ("test_exports", "type_tests", "tools")],
        {},
    ),
    "tornado": (
        ["--pyargs", "-p", "no:logging"]
        + [f"tornado.test.{name}_test" for name in ("concurrent", "gen", "ioloop", "locks", "process", "queues")],
        {"ASYNC_TEST_TIMEOUT": 60},
    ),
    "sympy": (["--pyargs", "sympy.core.tests.test_expr", "sympy.parsing"], {}),
}
WITH_TORCH = {
    "einops": (
        ["--pyargs", *(f"einops.tests.test_{name}" for name in ("ops", "einsum", "packing", "parsing"))],
        {"EINOPS_TEST_BACKENDS": "numpy,torch"},
    ),
    "numpy": (["--pyargs", "numpy.lib.tests.test_function_base", "numpy.ma", "numpy.polynomial"], {}),
}
OPERATOR_PARTS = 4
WITH = ".".join(map(str, sys.version_info[:3])) + " with torch"


@functools.cache
def environment(python, below):
    """A Python that has the packages: one of `python`'s kind, or the tests' own with them on top."""
    command = [ROOT / "scripts" / "venv.sh", REQUIREMENTS, *([sys.executable] if below else [])]
    made = subprocess.run(
        command, capture_output=True, text=True, env={**os.environ, **({} if below else {"TARE_PYTHON": python})}
    )
    assert made.returncode == 0, made.stderr
    return made.stdout.strip()


def versions():
    chosen = os.environ.get("TARE_SUITE_PYTHON")
    return [version for version in PYTHONS if chosen in (None, version)]


def suites():
    """(version, name) of each that the tests below run."""
    yield from ((version, name) for version in versions() for name in ANYWHERE)
    yield from ((WITH, name) for name in WITH_TORCH)
    yield from ((WITH, f"torch op_db.{part}") for part in range(OPERATOR_PARTS))


def check(name, version, python, arguments, env, program, folder):
    report = folder / "report.xml"
    command = [python, "-m", "pytest", "-q", "-p", "no:cacheprovider", f"--junit-xml={report}", "--timeout=300"]

    def run(more, without=(), only=None):
        choice = [f"-k={only}"] if only else [f"--deselect={test}" for test in without]
        own = {**env, "PYTHONHASHSEED": 0, "HYPOTHESIS_STORAGE_DIRECTORY": folder / "hypothesis", "OMP_NUM_THREADS": 1}
        return run_suite([*command, *choice, *arguments], report, {**own, **more})

    plain = program("plain_evaluator.c", "-shared", "-fPIC")
    check_suite("packages", name, version, run, folder / "traces", plain)


@pytest.mark.slow
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("name", ANYWHERE)
@pytest.mark.parametrize("version", versions())
def test_package(name, version, program, tmp_path):
    python = environment(PYTHONS[version], below=False)
    check(name, version, python, *ANYWHERE[name], program, tmp_path)


@pytest.mark.slow
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("name", WITH_TORCH)
def test_package_with_torch(name, program, tmp_path):
    pytest.importorskip("torch")
    check(name, WITH, environment(None, below=True), *WITH_TORCH[name], program, tmp_path)


@pytest.mark.slow
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("part", range(OPERATOR_PARTS))
def test_operators_of_torch(part, program, tmp_path):
    """torch's samples of every operator, forwards and backwards: the same results, bit by bit."""
    pytest.importorskip("torch")
    command = [environment(None, below=True), PROG / "torch_op_samples.py", str(part), str(OPERATOR_PARTS)]

    def run(env, without=(), only=None):
        # Some operators' samples come in the order of a set of strings.
        outcome = run_suite(command, tmp_path / "none.xml", {"PYTHONHASHSEED": 0, **env})
        lines = [line.split("\t") for line in outcome.output.splitlines() if "\t" in line]
        outcome.tests.update(lines)
        assert len(lines) > 100, outcome.output
        return outcome

    plain = program("plain_evaluator.c", "-shared", "-fPIC")
    check_suite("packages", f"torch op_db.{part}", WITH, run, tmp_path / "traces", plain)
