"""Calls that libtare.so makes of the system fail, one after the other: the program ends as it does bare."""

import os
import re
import resource
import shutil
import subprocess
from pathlib import Path

import pytest
from conftest import LIBTARE, PROG, clean_environment, is_whole



def sweep(tmp_path, failing, count_events, command, points=None, **how):
    """
    Fails the n-th call that libtare.so makes, for each n. Each kind that it makes is among them, from the start
    until the first block is written and then: see fail_calls.c. TARE_SWEEP=FILE: what was tried, a line each.
    """
    traces, count = tmp_path / "traces", tmp_path / "count"
    env = {"LD_PRELOAD": f"{LIBTARE}:{failing}", "TARE_OUTPUT": f"{traces}/", "FAIL_COUNT": count}
    env.update({f"FAIL_{name.upper()}": value for name, value in how.items()})

    def run(n):
        shutil.rmtree(traces, ignore_errors=True)
        done = subprocess.run(
            command, env=clean_environment({**env, "FAIL_AT": n}), capture_output=True, cwd=tmp_path
        )
        return done.returncode, done.stdout, done.stderr

    bare = subprocess.run(command, env=clean_environment({}), capture_output=True, cwd=tmp_path)
    expected = bare.returncode, bare.stdout, bare.stderr
    assert run(0) == expected
    calls, *kinds = count.read_text().splitlines()[-1].split()
    calls = int(calls)
    tried = {name: (int(a), int(b)) for name, a, b in (re.split("[=+]", kind) for kind in kinds)}
    assert calls == sum(map(sum, tried.values()))
    assert all(min(tried[kind]) > 0 for kind in ("open", "write")) and tried["mmap"][0] > 0, tried
    assert tried["ftruncate"] == tried["clone"] == (0, 0), tried
    if "TARE_SWEEP" in os.environ:
        with open(os.environ["TARE_SWEEP"], "a") as file:
            print(calls, Path(command[0]).resolve().name, how, tried, file=file)
    for n in points or range(1, calls + 1):
        assert run(n) == expected, n
        for trace in traces.glob("*"):
            counts = count_events(trace)
            # A short write leaves half a frame behind, and nothing after it.
            assert is_whole(counts) or how.get("short") and not counts["damaged"], (n, counts)


@pytest.mark.parametrize(
    "how",
    [
        {},
        {"for": 1000000},
        {"errno": 28, "short": 1},
        {"errno": 12},
        {"errno": 24},
        {"errno": 24, "for": 1000000},
    ],
    ids=str,
)
def test_failing_calls(tmp_path, failing, count_events, calls_program, how):
    sweep(tmp_path, failing, count_events, calls_program("blocks"), **how)


@pytest.mark.parametrize("how", [{}, {"for": 1000000}, {"errno": 28, "short": 1}], ids=str)
def test_failing_calls_in_python(tmp_path, failing, count_events, any_python, how):
    command = [any_python, "-I", "-S", PROG / "process_busy.py", "20000"]
    sweep(tmp_path, failing, count_events, command, **how)


def test_little_address_space(run_bare_and_traced, any_python):
    """The dynamic linker has just room for libtare.so; a trace has none, or has."""
    command = [any_python, "-I", "-S", "-c", "print(sum(len(str(i)) for i in range(100000)))"]

    def limited(megabytes):
        return lambda: resource.setrlimit(resource.RLIMIT_AS, (megabytes << 20, megabytes << 20))

    def runs(megabytes):
        more = {"capture_output": True, "preexec_fn": limited(megabytes)}
        return subprocess.run(command, env=clean_environment({}), **more).returncode == 0

    least = next(megabytes for megabytes in range(8, 100) if runs(megabytes))
    for more in (4, 5, 6, 8, 12):
        run_bare_and_traced(command, preexec_fn=limited(least + more), row="little address space")
