"""
The program cannot tell that tare is there: what programs do to themselves and to their interpreter, bare and
traced. tests/matrix.py lists all of them; see also test_fidelity_*.py and test_processes.py (ends, children,
threads, disks).
"""

import json
import os
import re
import subprocess

import matrix
import pytest
from conftest import PROG, PYTHONS, ROOT, assert_readable, is_whole

PYTHON = PROG / "fidelity_python.py"
RECURSION = PROG / "fidelity_recursion.py"


def version_of(python):
    """(3, 11)"""
    return matrix.version_of(next(name for name, path in PYTHONS.items() if path == python))[:2]


def test_table():
    """docs/fidelity.md has the rows of matrix.py, each with what is expected of it, and no difference."""
    text = (ROOT / "docs" / "fidelity.md").read_text()
    columns, cells, seconds = matrix.parse(text)
    assert matrix.render(columns, cells, seconds) == text
    (own,) = [column for column in columns if ("training", column) in cells]
    same = {
        (row.name, column): "same"
        for row in matrix.ROWS.values()
        for column in columns
        if matrix.expected(row, column, own)
    }
    assert cells == same


# -------------------------------------------------------------------------------- Python

CASES = {
    "generators": "generators: closed, thrown into, abandoned, collected",
    "asynchronous": "asyncio",
    "through_c": "exceptions through C",
    "profilers": "cProfile, trace, settrace",
    "interval_signals": "a handler at 1 kHz",
    "handler_that_raises": "a handler that raises",
    "fork_in_handler": "fork in a signal handler",
    "exits_in_threads": "threads that raise, exit, and finalise",
    "storm": "a storm of 100 shells and 3 compilers",
    "spawns": "subprocess: session, preexec_fn, no environment, pty, os.system, os.spawnv",
    "fork_at_exit": "fork at exit",
    "descriptors": "files in all low numbers, and back",
    "directories": "a working directory that is removed; chroot",
    "errors": "errno, warnings, tracebacks",
    "code_extras": "another's data on code objects",
    "memory": "a MemoryError under RLIMIT_AS",
}
OTHERS = {
    "many_threads": "500 threads at once",
    "multiprocess": "a manager, a pool of short workers, shared memory, a worker that aborts",
}


def test_what_programs_do(run_bare_and_traced, count_events, any_python):
    run = run_bare_and_traced([any_python, PYTHON, *CASES], returncode=0, row=CASES.values())
    assert re.search(r"^threads 1 1$", run.stdout, re.MULTILINE)
    assert_readable(count_events, run.traces)


@pytest.mark.parametrize("name", OTHERS)
def test_much_at_once(run_bare_and_traced, count_events, python, name):
    run = run_bare_and_traced([python, PYTHON, name], returncode=0, row=OTHERS[name])
    assert_readable(count_events, run.traces)
    if name == "many_threads":
        assert len(count_events(run.trace)["threads"]) == 501


def test_no_descriptor_left(run_bare_and_traced, count_events, any_python):
    run = run_bare_and_traced([any_python, PYTHON, "few_descriptors"], returncode=0, row="RLIMIT_NOFILE")
    counts = count_events(run.trace)
    assert counts["lost"] and is_whole(counts)


@pytest.mark.slow
def test_storm_of_1000_processes(run_bare_and_traced, any_python):
    command = [any_python, PYTHON, "storm_of_1000"]
    run = run_bare_and_traced(command, returncode=0, row="a storm of 1000 processes")
    assert len(run.traces) == 1


@pytest.mark.slow
@pytest.mark.parametrize("name", OTHERS)
def test_much_at_once_everywhere(run_bare_and_traced, count_events, any_python, name):
    command = [any_python, PYTHON, name]
    run = run_bare_and_traced(command, returncode=0, timeout=240, row=OTHERS[name])
    assert_readable(count_events, run.traces)


@pytest.mark.parametrize(
    "options", [["-E"], ["-W", "error"], ["-X", "dev"], ["-X", "tracemalloc"], ["-OO"], ["-P"]], ids=" ".join
)
def test_options(run_bare_and_traced, any_python, options):
    row = "options " + " ".join(options)
    if options == ["-P"] and version_of(any_python) < matrix.ROWS[row].where:
        pytest.skip(matrix.ROWS[row].remark)
    cases = ["generators", "asynchronous", "profilers", "exits_in_threads", "fork_at_exit", "code_extras"]
    run_bare_and_traced([any_python, *options, PYTHON, *cases], returncode=0, row=row)


FAULTS = {
    "crash": "import faulthandler as f; f.enable(all_threads=False); f._sigsegv()",
    "abort": "import faulthandler as f, os; f.enable(all_threads=False); os.abort()",
    "overflow": "import faulthandler as f; f.enable(all_threads=False); f._stack_overflow()",
    "later": "import faulthandler as f, time; f.dump_traceback_later(0.1, exit=True); time.sleep(9)",
    "in C": "import faulthandler as f, ctypes; f.enable(); ctypes.string_at(0)",
}


@pytest.mark.parametrize("how", FAULTS)
def test_faulthandler(run_bare_and_traced, any_python, how):
    """What it writes holds addresses, but for those it is the same."""
    code = f"""
import re, subprocess, sys
done = subprocess.run([sys.executable, "-c", {FAULTS[how]!r}], capture_output=True, text=True)
print(done.returncode, re.sub("0x[0-9a-f]+", "ADDRESS", done.stderr))
"""
    run = run_bare_and_traced([any_python, "-c", code], returncode=0, row="faulthandler")
    assert "most recent call first" in run.stdout


ENDLESS = {"main": "recursion without end, 21 kinds", "thread": "recursion without end in a thread"}


@pytest.mark.parametrize("where", ENDLESS)
def test_recursion_without_end(run_bare_and_traced, any_python, tmp_path, where):
    """Nowhere sooner than bare. Through C later from 3.12 on, see pyhooks/README.md."""
    version = version_of(any_python)
    # Elsewhere the C stack ends before such a limit, bare too.
    limits = [1000, 20000] if version == (3, 12) else [1000]
    depths = [tmp_path / "bare.json", tmp_path / "traced.json"]
    for limit in limits:
        command = [any_python, RECURSION, str(limit), where]
        run_bare_and_traced(
            command,
            env={"TARE_TEST_DEPTHS": depths[0]},
            trace_env={"TARE_TEST_DEPTHS": depths[1]},
            returncode=0,
            row=ENDLESS[where],
        )
        bare, traced = (json.loads(path.read_text()) for path in depths)
        if version < (3, 12):
            assert traced == bare
        elif limit == 1000:
            assert all(traced[name] >= bare[name] for name in bare), (bare, traced)


# -------------------------------------------------------------------------------- tools


def test_coverage(run_bare_and_traced, count_events, any_tools):
    run = run_bare_and_traced([any_tools, PYTHON, "coverage"], returncode=0, row="coverage")
    assert "fidelity_python.pyx" in run.stdout
    assert_readable(count_events, run.traces)


def test_gevent(run_bare_and_traced, count_events, any_tools):
    row = "gevent: monkey, pool, timeouts, killed, subprocess"
    run = run_bare_and_traced([any_tools, PROG / "tools_gevent.py"], returncode=4, row=row)
    assert_readable(count_events, run.traces)


def test_debugpy(run_bare_and_traced, count_events, any_tools):
    """What is debugged, its adapter and the client: each is traced."""
    row = "debugpy: a breakpoint, a variable, a step"
    run = run_bare_and_traced([any_tools, PROG / "tools_debugpy.py"], returncode=0, row=row)
    assert "(2, 4, 14)" in run.stdout
    assert len(run.traces) >= 3
    assert_readable(count_events, run.traces)


@pytest.mark.slow
def test_frozen_program(run_bare_and_traced, count_events, any_tools, tmp_path):
    ask = "import sysconfig as s; print(s.get_config_var('Py_ENABLE_SHARED'))"
    if subprocess.run([any_tools, "-c", ask], capture_output=True, text=True).stdout != "1\n":
        pytest.skip("no shared libpython")
    command = [any_tools, "-m", "PyInstaller", "--log-level=ERROR", PROG / "process_end.py"]
    env = {**os.environ, "PYINSTALLER_CONFIG_DIR": tmp_path / "config"}
    subprocess.run(command, cwd=tmp_path, check=True, env=env)
    program = tmp_path / "dist" / "process_end" / "process_end"
    run = run_bare_and_traced([program, "exit3"], returncode=3, row="a frozen program (PyInstaller)")
    assert "ends by exit3" in run.stdout
    assert_readable(count_events, run.traces)
    assert sum(events.get("FRAME", 0) for events in count_events(run.trace)["threads"].values()) > 100
