"""
The cases of hidden synchronisation in tests/cases, with their annotations: `tare syncs` finds what is
expected on its line, with its count and class, and nothing on a line that is clean.

    # EXPECT kind n/pass class [explicit]   n may be >=n; kind may be any
    # CLEAN
    # EXPECT-OPS operator n/pass of the outer loop, operator n
"""

import json
import re
import subprocess
from pathlib import Path

import pytest
from conftest import ROOT, SIM, TARE

pytest.importorskip("torch")

# Kernels compute nothing on the simulated device: a selection is empty, and what is left of printing it
# is one read of its size.
ALSO = {"a3_format_and_repr.py:10": "size-read"}

CASES = sorted((ROOT / "tests" / "cases").glob("*.py"))


@pytest.fixture
def syncs():
    """syncs(trace, *options) → the JSON of `tare syncs`."""

    def syncs(trace, *options, returncode=0):
        done = subprocess.run(
            [TARE, "syncs", "--format", "json", *options, trace], capture_output=True, text=True
        )
        assert done.returncode == returncode, done.stderr
        return json.loads(done.stdout)

    return syncs


def on_line(findings, path, line):
    def is_there(site):
        return site and Path(site["file"]).name == path.name and site["line"] == line

    return [one for one in findings if is_there(one["user_site"]) or is_there(one["site"])]


def per_pass(finding):
    return finding["per_pass"] if finding["per_pass"] is not None else 0


def check_expected(found, kind, at_least, count, kind_class, explicit, where):
    fitting = [
        one
        for one in found
        if (kind in ("any", one["kind"]) or ALSO.get(where) == one["kind"])
        and one["class"] == kind_class
        and one["explicit"] == explicit
    ]
    assert fitting, f"{where}: no {kind} {kind_class} among {found}"
    total = sum(map(per_pass, fitting))
    if at_least:
        assert total >= count - 0.001, where
    else:
        assert total == pytest.approx(count, rel=0.001), where


def check_ops(trace, path, line, text, where):
    """Per pass of the outer loop, which the first `for` of the file is."""
    outer = next(i for i, one in enumerate(path.read_text().splitlines(), 1) if one.startswith("for "))
    command = [TARE, "ops", "--format", "json", "--loop", f"{path.name}:{outer}", trace]
    ops = json.loads(subprocess.run(command, capture_output=True, text=True, check=True).stdout)["ops"]
    for name, count in re.findall(r"(aten::\w+) (\d+)", text):
        rows = [row for row in on_line(ops, path, line) if row["op"].split(".")[0] == name]
        assert sum(row["calls_per_pass"] for row in rows) == int(count), f"{where}: {name}"


def check_case(path, run, syncs):
    # A race of torch's own at its end, right after a backward(), with and without us: tests/sim/README.md.
    aborted = "terminate called without an active exception" in run.stderr
    assert run.returncode == 0 or aborted, run.stderr
    result = syncs(run.trace)
    findings = result["findings"]
    checked = 0
    for number, line in enumerate(path.read_text().splitlines(), 1):
        where = f"{path.name}:{number}"
        found = on_line(findings, path, number)
        expected = re.search(r"# EXPECT ([\w-]+) (>=)?([\d.]+)/pass (\w+)( explicit)?", line)
        if expected:
            kind, at_least, count, kind_class, explicit = expected.groups()
            check_expected(found, kind, at_least, float(count), kind_class, bool(explicit), where)
            checked += 1
        if "# CLEAN" in line:
            assert not found, f"{where}: {found}"
            checked += 1
        if "EXPECT-OPS" in line:
            check_ops(run.trace, path, number, line.split("EXPECT-OPS")[1], where)
    assert checked


every_case = pytest.mark.parametrize("path", CASES, ids=[path.stem for path in CASES])


@every_case
def test_case(path, run_traced, sim, python, syncs):
    check_case(path, run_traced(sim([python, path])), syncs)


@pytest.fixture(scope="session")
def python_cuda12():
    """A Python whose torch is built for CUDA 12."""
    if not (SIM / "stubs-cu12" / ".stamp").exists():
        pytest.skip("there is no torch for CUDA 12 (make sim12)")
    command = [ROOT / "scripts" / "venv.sh", "tests/requirements-cuda12.txt"]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()


@pytest.mark.slow
@every_case
def test_case_cuda12(path, run_traced, sim, python_cuda12, syncs):
    run = run_traced(sim([python_cuda12, path], "--cuda", "12"))
    check_case(path, run, syncs)
    header = json.loads(subprocess.run([TARE, "info", "--format", "json", run.trace], capture_output=True).stdout)
    assert "libcudart.so.12" in json.dumps(header)
