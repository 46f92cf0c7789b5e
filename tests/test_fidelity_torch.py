"""What programs do with torch, on the processor and on the simulated device: bare and traced."""

import os
import subprocess
import sysconfig

import pytest
from conftest import PROG, assert_readable, clean_environment, is_whole

pytest.importorskip("torch")

TORCH = PROG / "fidelity_torch.py"


def steady(command):
    """stderr without times, pids and sizes."""
    script = '{ "$@" 2>&1 >&3 | sed -E "s/[0-9]{2,}/N/g" >&2; } 3>&1'
    return ["bash", "-o", "pipefail", "-c", script, "bash", *command]


QUICK = {
    "cpu": {
        "training": "training",
        "profiler": "record_function under torch.profiler",
        "autograd": "hooks, autograd functions, errors in backward",
        "threads": "autograd's threads",
        "workers": "DataLoader, 2 workers",
        "persistent_workers": "DataLoader, persistent workers",
        "dying_worker": "DataLoader, a worker that dies",
        "jit": "jit.script, jit.trace",
    },
    "cuda": {
        "training": "training on the device",
        "graphs": "CUDA graphs",
        "synchronisation": "set_sync_debug_mode: warn, error",
    },
}


@pytest.mark.parametrize("device", QUICK)
def test_torch(run_bare_and_traced, count_events, python, sim, device):
    cases = QUICK[device]
    command = [python, TORCH, device, *cases]
    command = steady(sim(command) if device == "cuda" else command)
    run = run_bare_and_traced(command, returncode=0, row=cases.values())
    assert_readable(count_events, run.traces)


SLOW = {
    ("cpu", "compiled"): "torch.compile: eager, aot_eager, graph breaks",
    ("cpu", "inductor"): "torch.compile: inductor",
    ("cuda", "profiler"): "torch.profiler on the device",
    ("cuda", "autograd"): (),
    ("cuda", "jit"): (),
    ("cuda", "compiled"): (),
    ("cuda", "workers"): (),
}


@pytest.mark.slow
@pytest.mark.parametrize("device, case", SLOW)
def test_more_of_torch(run_bare_and_traced, count_events, python, sim, tmp_path, device, case):
    if case == "inductor" and not os.path.exists(f"{sysconfig.get_path('include')}/Python.h"):
        pytest.skip("inductor compiles with Python's headers, which are not here")
    command = [python, TORCH, device, case]
    command = steady(sim(command) if device == "cuda" else command)
    # What inductor has compiled bare is compiled again.
    run = run_bare_and_traced(
        command,
        returncode=0,
        timeout=250,
        env={"TARE_TEST_CACHE": tmp_path / "bare"},
        trace_env={"TARE_TEST_CACHE": tmp_path / "traced"},
        row=SLOW[device, case],
    )
    assert_readable(count_events, run.traces)
    if case == "inductor":
        compiled = [len(list((tmp_path / which).rglob("*.so"))) for which in ("bare", "traced")]
        assert compiled[0] == compiled[1] > 0


@pytest.mark.slow
def test_torchrun_with_a_killed_rank(tmp_path, run_traced, belongs_to, count_events, python):
    """What it prints holds times and pids: status and files are compared."""
    belongs_to("torchrun, 2 ranks on gloo, one killed")
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
