"""
The program cannot tell that tare is there: what programs do to themselves, their interpreter and to what
stands in between, bare and traced. See also test_processes.py (ends, children, threads, disks).
"""

import glob
import json
import os
import re
import resource
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from conftest import LIBTARE, PROG, ROOT, clean_environment

PYTHON = PROG / "fidelity_python.py"
RECURSION = PROG / "fidelity_recursion.py"


def assert_readable(count_events, traces):
    for trace in traces:
        counts = count_events(trace)
        assert not any(counts[what] for what in ("lost", "damaged", "missing", "truncated")), counts


def is_whole(counts):
    """What was lost is said."""
    gaps = counts["missing"] or counts["truncated"]
    return not counts["damaged"] and (not gaps or counts["lost"])


# -------------------------------------------------------------------------------- Python


def test_what_programs_do(run_bare_and_traced, count_events, any_python):
    run = run_bare_and_traced([any_python, PYTHON], returncode=0)
    assert re.search(r"^threads 1 1$", run.stdout, re.MULTILINE)
    assert_readable(count_events, run.traces)


@pytest.mark.parametrize("name", ["many_threads", "multiprocess"])
def test_much_at_once(run_bare_and_traced, count_events, python, name):
    run = run_bare_and_traced([python, PYTHON, name], returncode=0)
    assert_readable(count_events, run.traces)
    if name == "many_threads":
        assert len(count_events(run.trace)["threads"]) == 501


def test_no_descriptor_left(run_bare_and_traced, count_events, any_python):
    run = run_bare_and_traced([any_python, PYTHON, "few_descriptors"], returncode=0)
    counts = count_events(run.trace)
    assert counts["lost"] and is_whole(counts)


@pytest.mark.slow
def test_storm_of_1000_processes(run_bare_and_traced, python):
    run = run_bare_and_traced([python, PYTHON, "storm_of_1000"], returncode=0)
    assert len(run.traces) == 1


@pytest.mark.slow
@pytest.mark.parametrize("name", ["multiprocess", "many_threads"])
def test_much_at_once_everywhere(run_bare_and_traced, count_events, any_python, name):
    run = run_bare_and_traced([any_python, PYTHON, name], returncode=0, timeout=240)
    assert_readable(count_events, run.traces)


@pytest.mark.parametrize(
    "options", [["-E"], ["-W", "error"], ["-X", "dev"], ["-X", "tracemalloc"], ["-OO"], ["-P"]], ids=" ".join
)
def test_options(run_bare_and_traced, python, options):
    if options == ["-P"] and sys.version_info < (3, 11):
        pytest.skip("came with 3.11")
    cases = ["generators", "asynchronous", "profilers", "exits_in_threads", "fork_at_exit", "code_extras"]
    run_bare_and_traced([python, *options, PYTHON, *cases], returncode=0)


def test_coverage(run_bare_and_traced, python):
    if subprocess.run([python, "-c", "import coverage"], stderr=subprocess.DEVNULL).returncode:
        pytest.skip("coverage is not installed")
    run_bare_and_traced([python, PYTHON, "coverage"], returncode=0)


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
    run = run_bare_and_traced([any_python, "-c", code], returncode=0)
    assert "most recent call first" in run.stdout


@pytest.mark.parametrize("where", ["main", "thread"])
def test_recursion_without_end(run_bare_and_traced, any_python, tmp_path, where):
    """Nowhere sooner than bare. Through C later from 3.12 on, see pyhooks/README.md."""
    version = subprocess.run([any_python, "-V"], capture_output=True, text=True).stdout.split()[1]
    at_least_3_12 = tuple(map(int, version.split("."))) >= (3, 12, 0)
    # Elsewhere the C stack ends before such a limit, bare too.
    limits = [1000, 20000] if version.startswith("3.12.") else [1000]
    depths = [tmp_path / "bare.json", tmp_path / "traced.json"]
    for limit in limits:
        command = [any_python, RECURSION, str(limit), where]
        run_bare_and_traced(
            command,
            env={"TARE_TEST_DEPTHS": depths[0]},
            trace_env={"TARE_TEST_DEPTHS": depths[1]},
            returncode=0,
        )
        bare, traced = (json.loads(path.read_text()) for path in depths)
        if not at_least_3_12:
            assert traced == bare
        elif limit == 1000:
            assert all(traced[name] >= bare[name] for name in bare), (bare, traced)


# -------------------------------------------------------------------------------- C


@pytest.fixture(scope="session")
def fake_runtime(tmp_path_factory):
    """A CUDA runtime that does nothing, and takes no lock: signal handlers may call it."""
    out = tmp_path_factory.mktemp("fake") / "libcudart.so.13"
    script = out.parent / "version.map"
    script.write_text("libcudart.so.13 { global: *; };\n")
    command = ["gcc", "-std=gnu17", "-D_GNU_SOURCE", "-O1", "-w", "-shared", "-fPIC", "-I", ROOT]
    command += ["-DCUDART_MAJOR=13", "-DFAKE_RESULT=0", f"-Wl,--version-script={script}"]
    command += [f"-Wl,-soname,{out.name}", PROG / "cuda_fake.c", "-o", out]
    subprocess.run(command, check=True)
    return out


@pytest.fixture(scope="session")
def calls_program(program, fake_runtime):
    """tests/prog/fidelity_calls.c and the plugin that it opens."""
    link = str(fake_runtime), f"-Wl,-rpath,{fake_runtime.parent}"
    plugin = program("cuda_plugin.c", "-shared", "-fPIC", "-w", "-DCUDART_MAJOR=13", *link)
    main = program("fidelity_calls.c", *link)
    return lambda case: [main, case, plugin]


@pytest.mark.parametrize(
    "case, status",
    [
        ("blocks", 3),
        ("signals", 0),
        ("jumps", 0),
        ("exits", 5),
        ("exit_handlers", 6),
        ("stack_overflow", 9),
        ("closes", 0),
        ("deepbind", 0),
    ],
)
def test_calls(run_bare_and_traced, count_events, calls_program, case, status):
    run = run_bare_and_traced(calls_program(case), returncode=status)
    assert_readable(count_events, run.traces)
    assert len(run.traces) == 1 + (case in ("blocks", "exit_handlers"))


def find_library(name):
    return next(iter(sorted(glob.glob(f"/usr/lib/*-linux-gnu/lib{name}.so.?"))), None)


@pytest.mark.parametrize("order", ["tare first", "tare last"])
@pytest.mark.parametrize("name", ["jemalloc", "mimalloc", "asan"])
def test_other_preloads(run_bare_and_traced, count_events, calls_program, python, name, order):
    library = find_library(name)
    if not library or (name == "asan" and order == "tare first"):
        pytest.skip(f"no lib{name} in /usr/lib" if not library else "ASan has to be first")
    preload = f"{LIBTARE}:{library}" if order == "tare first" else f"{library}:{LIBTARE}"
    env = {"LD_PRELOAD": library, "ASAN_OPTIONS": "detect_leaks=0"}
    for command in ([python, PYTHON, "generators", "multiprocess", "profilers"], calls_program("blocks")):
        run = run_bare_and_traced(command, env=env, trace_env={"LD_PRELOAD": preload})
        assert run.returncode in (0, 3)
        assert run.traces
        assert_readable(count_events, run.traces)


def test_program_with_asan(run_bare_and_traced, count_events, program, fake_runtime):
    """Its own runtime has to be the first library, also before ours."""
    flags = "-fsanitize=address", str(fake_runtime), f"-Wl,-rpath,{fake_runtime.parent}"
    command = [program("fidelity_calls.c", *flags), "blocks"]
    runtime = subprocess.run(["gcc", "-print-file-name=libasan.so"], capture_output=True, text=True)
    library = os.path.realpath(runtime.stdout.strip())
    run = run_bare_and_traced(
        command, env={"LD_PRELOAD": library}, trace_env={"LD_PRELOAD": f"{library}:{LIBTARE}"}, returncode=3
    )
    assert len(run.traces) == 2
    assert_readable(count_events, run.traces)


def test_musl_and_static_children(run_bare_and_traced, tmp_path, python):
    source = tmp_path / "child.c"
    source.write_text("int main(void) { return 4; }\n")
    children = []
    for compiler in (["gcc", "-static"], ["musl-gcc"]):
        if shutil.which(compiler[0]):
            child = tmp_path / compiler[0]
            if subprocess.run([*compiler, source, "-o", child]).returncode == 0:
                children.append(str(child))
    code = f"import subprocess\nfor c in {children!r}: print(subprocess.run([c], capture_output=True))"
    run = run_bare_and_traced([python, "-c", code], returncode=0)
    assert len(run.traces) == 1


# -------------------------------------------------------------------------------- failing calls


@pytest.fixture(scope="session")
def failing(program):
    return program("fail_calls.c", "-shared", "-fPIC")


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


def test_little_address_space(run_bare_and_traced, python):
    """The dynamic linker has just room for libtare.so; a trace has none, or has."""
    command = [python, "-I", "-S", "-c", "print(sum(len(str(i)) for i in range(100000)))"]

    def limited(megabytes):
        return lambda: resource.setrlimit(resource.RLIMIT_AS, (megabytes << 20, megabytes << 20))

    def runs(megabytes):
        more = {"capture_output": True, "preexec_fn": limited(megabytes)}
        return subprocess.run(command, env=clean_environment({}), **more).returncode == 0

    least = next(megabytes for megabytes in range(8, 100) if runs(megabytes))
    for more in (4, 5, 6, 8, 12):
        run_bare_and_traced(command, preexec_fn=limited(least + more))


# -------------------------------------------------------------------------------- torch

TORCH = PROG / "fidelity_torch.py"


def steady(command):
    """stderr without times, pids and sizes."""
    script = '{ "$@" 2>&1 >&3 | sed -E "s/[0-9]{2,}/N/g" >&2; } 3>&1'
    return ["bash", "-o", "pipefail", "-c", script, "bash", *command]


def test_torch(run_bare_and_traced, count_events, python):
    command = [python, TORCH, "cpu", "training", "profiler", "autograd"]
    run = run_bare_and_traced(steady(command), returncode=0)
    assert_readable(count_events, run.traces)


def test_torch_on_the_device(run_bare_and_traced, count_events, python, sim):
    command = sim([python, TORCH, "cuda", "training", "graphs", "synchronisation"])
    run = run_bare_and_traced(steady(command), returncode=0)
    assert_readable(count_events, run.traces)


@pytest.mark.slow
@pytest.mark.parametrize("device", ["cpu", "cuda"])
@pytest.mark.parametrize("case", ["profiler", "autograd", "jit", "compiled", "loader"])
def test_more_of_torch(run_bare_and_traced, count_events, python, sim, device, case):
    command = [python, TORCH, device, case]
    run = run_bare_and_traced(steady(sim(command) if device == "cuda" else command), returncode=0)
    assert_readable(count_events, run.traces)


@pytest.mark.slow
def test_torchrun_with_a_killed_rank(tmp_path, run_traced, count_events, python):
    """What it prints holds times and pids: status and files are compared."""
    command = [python, "-m", "torch.distributed.run", "--nproc-per-node=2", "--master-port=0"]
    command += ["--rdzv-backend=c10d", "--rdzv-endpoint=localhost:0", TORCH, "cpu", "distributed"]
    bare = tmp_path / "bare"
    bare.mkdir()
    done = subprocess.run(
        [str(part) for part in command], cwd=bare, env=clean_environment({}), capture_output=True
    )
    run = run_traced(command)
    assert run.returncode == done.returncode == 1
    for rank in ("rank-0", "rank-1"):
        assert (run.folder / rank).read_text() == (bare / rank).read_text() == "[3.0, 3.0, 3.0]\n"
    assert len(run.traces) == 3
    for trace in run.traces:
        assert is_whole(count_events(trace))
