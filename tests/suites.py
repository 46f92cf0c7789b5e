"""
What test_cpython_suite.py and test_package_suites.py share: other people's tests are run bare and traced, and
compared test by test with what suite_differences.toml says. What came out is kept for suite_doc.py.

A test's outcome is "passed", "failure", "error" or "skipped"; None: it did not run. That of a WHOLE run is
"passed" or how it ended.
"""

import collections
import dataclasses
import functools
import json
import os
import shutil
import signal
import subprocess
import tempfile
import time
import xml.etree.ElementTree
from pathlib import Path

import pytest
from conftest import BUILD, LIBTARE, TARE, clean_environment

DIFFERENCES = Path(__file__).parent / "suite_differences.toml"
RESULTS = BUILD / "suites"
WHOLE = "the whole run"
ROUNDS = 3  # a test that differs in each of them differs
LIMIT_S = 600


@dataclasses.dataclass
class Difference:
    """
    A row of suite_differences.toml. `tests`: names, or patterns that the suite's own choice of tests takes.
    `any_evaluator`: one that only forwards (prog/plain_evaluator.c) makes the same difference.
    """

    suite: str
    module: str
    versions: list
    tests: list
    why: str
    any_evaluator: bool = True

    def is_of(self, suite, module, version):
        minor = ".".join(version.split(".")[:2])
        return self.suite == suite and self.module == module and minor in self.versions


@functools.cache
def differences():
    tomllib = pytest.importorskip("tomllib")  # from 3.11 on
    return [Difference(**row) for row in tomllib.loads(DIFFERENCES.read_text())["difference"]]


@dataclasses.dataclass
class Outcome:
    tests: dict
    seconds: float
    output: str


def start_clean():
    """A test of signals must not depend on how pytest was started."""
    for number in (signal.SIGHUP, signal.SIGINT, signal.SIGQUIT, signal.SIGTERM):
        signal.signal(number, signal.SIG_DFL)
    signal.pthread_sigmask(signal.SIG_SETMASK, [])


def run_suite(command, report, env):
    """Runs `command` in a new folder; it writes the JUnit file `report`."""
    report.unlink(missing_ok=True)
    output = report.with_suffix(".out")
    folder = Path(tempfile.mkdtemp(prefix="suite-"))  # short: the paths of sockets may have 107 bytes
    start = time.monotonic()
    with output.open("wb") as file, subprocess.Popen(
        [str(part) for part in command],
        cwd=folder,
        env=clean_environment({"TMPDIR": folder, **env}),
        stdin=subprocess.DEVNULL,
        stdout=file,
        stderr=subprocess.STDOUT,
        preexec_fn=start_clean,
        start_new_session=True,
    ) as process:
        try:
            status = process.wait(timeout=LIMIT_S)
            whole = "passed" if status == 0 else f"status {status}"
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            whole = f"not done after {LIMIT_S} s"
    seconds = time.monotonic() - start
    tests = {WHOLE: whole}
    if report.exists():
        for case in xml.etree.ElementTree.parse(report).iter("testcase"):
            name = "::".join(filter(None, (case.get("classname"), case.get("name"))))
            if not name:  # regrtest's for a subtest that failed; its test has failed too
                continue
            tests[name] = next(
                (part.tag for part in case if part.tag in ("failure", "error", "skipped")), "passed"
            )
    shutil.rmtree(folder, ignore_errors=True)
    return Outcome(tests, seconds, output.read_text(errors="replace"))


def differing(bare, traced):
    """Names of tests; the whole counts where no test explains it."""
    names = {
        name
        for name in bare.tests.keys() | traced.tests.keys()
        if bare.tests.get(name) != traced.tests.get(name)
    }
    return names - {WHOLE} or names


def unreadable(folder):
    """What `tare info` says of traces in `folder` that it cannot read."""
    problems = []
    for trace in sorted(folder.glob("*.tare")):
        done = subprocess.run([TARE, "info", trace], capture_output=True, env=clean_environment({}))
        if done.returncode:
            problems.append((trace.name, done.returncode, done.stderr.decode(errors="replace")[-200:]))
    return problems


def compare(run, traces, **selection):
    """(bare, traced, {test: outcomes} that differed each time, {test: outcomes} that differed once)"""
    steady, all_seen = None, {}
    for _ in range(ROUNDS):
        shutil.rmtree(traces, ignore_errors=True)
        traces.mkdir(parents=True)
        bare = run({}, **selection)
        own = {"LD_PRELOAD": LIBTARE, "TARE_OUTPUT": f"{traces}/", "TARE_MAX_BYTES": "64M"}
        traced = run(own, **selection)
        now = differing(bare, traced)
        all_seen.update({name: (bare.tests.get(name), traced.tests.get(name)) for name in now})
        steady = now if steady is None else steady & now
        if not steady:
            break
    return bare, traced, {n: all_seen[n] for n in sorted(steady)}, all_seen


def check_suite(suite, module, version, run, traces, plain_evaluator):
    """
    run({environment}, without=[patterns], only=pattern) → Outcome. Fails where a test ends in another way
    traced than bare, but for those that suite_differences.toml lists. Each of these runs by itself, so that
    what it leaves behind is not mistaken for more; it fails when it no longer differs.
    """
    known = [row for row in differences() if row.is_of(suite, module, version)]
    listed = [test for row in known for test in row.tests]
    bare, traced, unlisted, seen = compare(run, traces, without=listed)
    broken = unreadable(traces)

    differs, gone, ours_alone = {}, [], []
    for row in known:
        for test in row.tests:
            alone, _, found, _ = compare(run, traces, only=test)
            bare.tests.update({n: v for n, v in alone.tests.items() if n != WHOLE})
            differs.update(found)
            gone += [] if found else [test]
            if row.any_evaluator and found.keys() - differing(
                alone, run({"LD_PRELOAD": plain_evaluator}, only=test)
            ):
                ours_alone.append(test)
    shutil.rmtree(traces, ignore_errors=True)

    counts = collections.Counter(v.split()[0] for name, v in bare.tests.items() if name != WHOLE)
    result = {
        "suite": suite,
        "module": module,
        "version": version,
        "tests": sum(counts.values()),
        "bare": dict(counts),
        "whole": bare.tests[WHOLE],
        "seconds": [bare.seconds, traced.seconds],
        "differs": differs,
        "unlisted": unlisted,
        "unsteady": {name: seen[name] for name in sorted(seen.keys() - unlisted.keys())},
    }
    RESULTS.mkdir(parents=True, exist_ok=True)
    path = RESULTS / f"{suite}-{version}-{module}.json".replace(" ", "_")
    path.write_text(json.dumps(result, indent=1))

    assert counts or result["whole"] == "passed", bare.output[-2000:]
    assert not unlisted, (unlisted, traced.output[-4000:])
    assert not gone, f"listed in {DIFFERENCES.name}, and the same now: {gone}"
    assert not ours_alone, f"a plain evaluator does not make them differ: {ours_alone}"
    assert not broken, broken
