"""TARE_STACKS=wait: the native stacks of calls that wait, in the trace and in `tare syncs`."""

import json
import os
import re
import shutil
import subprocess

import pytest
from conftest import PROG, TARE

SLOW_CALLS = {"TARE_SIM_HOST_US": "cudaDeviceSynchronize:60,cudaMemcpy:60"}
WAIT = {"TARE_STACKS": "wait"}


def findings(trace):
    command = [TARE, "syncs", "--format", "json", trace]
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    assert not done.stderr
    return json.loads(done.stdout)["findings"]


def functions(finding):
    """Names without parameters, innermost first."""
    return [re.sub(r"\(.*", "", frame["function"] or "?") for frame in finding["native_stack"]]


def stacks_layer(trace):
    command = [TARE, "info", "--format", "json", trace]
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    layers = json.loads(done.stdout)["traces"][0]["layers"]
    return next((layer for layer in layers if layer["layer"] == "stacks"), None)


def line_of(source, mark):
    lines = (PROG / source).read_text().splitlines()
    return next(number for number, line in enumerate(lines, 1) if mark in line)


@pytest.fixture
def calls(program, cudart, run_bare_and_traced):
    def calls(what, *flags, trace_env=None, env=None):
        command = [program("stacks_calls.c", *flags, *cudart()), what]
        env = {**SLOW_CALLS, **(env or {})}
        return run_bare_and_traced(
            command, env=env, trace_env={**WAIT, **(trace_env or {})}, returncode=0
        )

    return calls


def test_threads(calls, dump):
    run = calls("threads")
    assert run.stdout == "before: descriptor 3\nafter: descriptor 3\n"
    waits = [finding for finding in findings(run.trace) if finding["kind"] != "memory"]
    found = {finding["thread"].split()[1]: finding for finding in waits}
    main = next(f for name, f in found.items() if name.startswith("stacks_calls"))
    assert functions(main)[:2] == ["wait_for_device", "threads"]
    assert functions(found["waiter"])[:3] == ["wait_for_device", "work_of_waiter", "waiter"]
    assert functions(found["copier"])[:2] == ["copy_up", "copier"]
    assert found["waiter"]["count"] == 8 and found["copier"]["count"] == 4

    innermost = main["native_stack"][0]
    assert innermost["file"].endswith("stacks_calls.c")
    assert innermost["line"] == line_of("stacks_calls.c", "HERE")

    # Each is written once, and before it is named.
    records = dump(run.trace).records("STACK")
    blobs = [record["frames"] for record in records]
    assert len(blobs) == len(set(blobs))
    named = {event["stack"] for event in dump(run.trace).events("STACK")}
    assert named <= {record["stack"] for record in records}
    assert stacks_layer(run.trace)["state"] == "on"


def test_text(calls):
    run = calls("threads")
    done = subprocess.run([TARE, "syncs", run.trace], check=True, capture_output=True, text=True)
    text = done.stdout[done.stdout.index("native stacks") :]
    line = line_of("stacks_calls.c", "HERE")
    assert re.search(rf"^ +wait_for_device  stacks_calls.c:{line}$", text, re.MULTILINE)
    assert re.search(r"thread \d+ copier\n +copy_up  ", text)


def test_not_asked_for(calls, dump):
    run = calls("threads", trace_env={"TARE_STACKS": "none"})
    assert not dump(run.trace).events("STACK")
    assert not dump(run.trace).records("STACK", "MODULE")
    assert stacks_layer(run.trace) is None
    assert all(finding["native_stack"] is None for finding in findings(run.trace))


def test_short_calls_have_none(calls, dump):
    run = calls("threads", env={"TARE_SIM_HOST_US": ""})
    long_calls = [e for e in dump(run.trace).events("LEAVE") if e["duration_ns"] > 6000]
    assert len(dump(run.trace).events("STACK")) <= len(long_calls)


def test_forked_child(calls):
    run = calls("fork")
    assert run.stdout == "child ended with 7\n"
    parent, child = run.traces
    assert functions(findings(parent)[0])[:2] == ["wait_for_device", "forks"]
    assert functions(findings(child)[0])[:3] == ["wait_for_device", "in_child", "forks"]


def test_signals(calls):
    run = calls("signal")
    assert run.stdout == "4 jumps\n"
    stack = functions(findings(run.trace)[0])
    assert "wait_for_device" in stack and "main" in stack


def test_stacks_that_are_swapped(calls):
    """Coroutines: a stack is its own, and is looked at only while it is there."""
    run = calls("contexts")
    assert run.stdout == "back\n"
    [finding] = findings(run.trace)
    assert finding["count"] == 20 * 5
    assert functions(finding)[0] == "wait_for_device"


def test_deep_stacks_are_cut(calls, dump):
    run = calls("deep")
    assert len(dump(run.trace).events("STACK")) == 201
    stack = functions(findings(run.trace)[0])
    assert stack[:2] == ["wait_for_device", "recurse"] and len(stack) <= 96


def test_without_unwind_tables(calls):
    """The unwinder gets no further than the caller: that is what is shown."""
    run = calls("threads", "-fno-asynchronous-unwind-tables", "-fno-unwind-tables",
                "-fomit-frame-pointer")  # fmt: skip
    for finding in findings(run.trace):
        assert finding["native_stack"] is None or len(finding["native_stack"]) >= 1
    assert any(finding["native_stack"] for finding in findings(run.trace))


def test_stripped(calls):
    """Where there is no name, the file and the place in it."""
    run = calls("threads", "-s")
    done = subprocess.run([TARE, "syncs", run.trace], check=True, capture_output=True, text=True)
    assert re.search(r"^ +stacks_calls-\d+\+0x[0-9a-f]+$", done.stdout, re.MULTILINE)


def test_another_build(calls, tmp_path):
    """A file that was built anew since has other functions at these places."""
    run = calls("threads", "-Wl,--build-id")
    path = next(
        frame["module"]
        for frame in findings(run.trace)[0]["native_stack"]
        if "stacks_calls" in frame["module"]
    )
    shutil.copy(path, tmp_path / "kept")
    try:
        os.unlink(path)
        command = ["gcc", "-x", "c", "-", "-Wl,--build-id", "-o", path]
        subprocess.run(command, check=True, input=b"int main(void) { return 0; }")
        for finding in findings(run.trace):
            for frame in finding["native_stack"]:
                assert frame["module"] != path or frame["function"] is None
    finally:
        shutil.move(tmp_path / "kept", path)


def test_no_unwinder(calls, tmp_path, dump):
    (tmp_path / "libgcc_s.so.1").write_text("no library\n")
    run = calls("threads", trace_env={"LD_LIBRARY_PATH": tmp_path})
    layer = stacks_layer(run.trace)
    assert layer["state"] == "failed" and "libgcc_s.so.1" in layer["detail"]
    assert not dump(run.trace).events("STACK")
    done = subprocess.run([TARE, "report", run.trace], check=True, capture_output=True, text=True)
    assert "stacks failed: libgcc_s.so.1 cannot be loaded" in done.stdout


@pytest.mark.skipif(not shutil.which("g++"), reason="no C++ compiler")
def test_exceptions(cudart, run_bare_and_traced, tmp_path):
    source = tmp_path / "throws.cc"
    source.write_text(
        """
        #include <cstdio>
        #include <stdexcept>
        extern "C" int cudaDeviceSynchronize(void);
        namespace app {
        template <class T> struct Pool {
            __attribute__((noinline)) int drain(T left) {
                int result = cudaDeviceSynchronize();
                if (left % 2) throw std::runtime_error("odd");
                return result + (left ? drain(left - 2) : 0);
            }
        };
        }
        int main() {
            app::Pool<long> pool;
            int caught = 0;
            for (long i = 0; i < 20; i++)
                try { pool.drain(i); } catch (const std::exception &) { caught++; }
            std::printf("%d caught\\n", caught);
        }
        """
    )
    build = tmp_path / "throws"
    subprocess.run(["g++", "-O1", "-g", source, "-o", build, *cudart()], check=True)
    run = run_bare_and_traced([build], env=SLOW_CALLS, trace_env=WAIT, returncode=0)
    assert run.stdout == "10 caught\n"
    stack = functions(findings(run.trace)[0])
    assert stack[0] == "app::Pool<long>::drain" and "main" in stack


def test_torch(program, python, sim, run_bare_and_traced):
    program_path = program("stacks_torch.py")
    env = {"TARE_SIM_KERNEL_US": "100"}
    run = run_bare_and_traced(sim([python, program_path]), env=env, trace_env=WAIT, timeout=150)
    found = findings(run.trace)
    line = line_of("stacks_torch.py", "ITEM")
    item = next(f for f in found if f["kind"] == "scalar-read" and f["site"]["line"] == line)
    stack = functions(item)
    assert any("at::native::_local_scalar_dense_cuda" in function for function in stack)
    assert "torch::autograd::THPVariable_item" in stack
    assert not any("libtare" in frame["module"] for frame in item["native_stack"])
    backward = next(f for f in found if f["kind"] == "stream-sync")
    assert "torch::autograd::Engine::thread_main" in functions(backward)
    assert all(frame["module"] for frame in item["native_stack"])


def test_thread_without_python(program, python, sim, run_bare_and_traced):
    env = {"TARE_SIM_KERNEL_US": "100"}
    command = sim([python, program("stacks_gloo.py")])
    run = run_bare_and_traced(command, env=env, trace_env=WAIT, timeout=150, returncode=0)
    found = [f for f in findings(run.trace) if "gloo" in f["thread"] and f["native_stack"]]
    assert found and all(not f["site"] for f in found)
    stack = functions(found[0])
    assert any("c10d::" in function and "AllreduceCUDA" in function for function in stack)
    assert any("c10d::ProcessGroupGloo::runLoop" in function for function in stack)
