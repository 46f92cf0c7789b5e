"""
The same on a real device (make check-gpu): against torch.profiler on the same program, against a program that
is not traced, and against CUDA's own events. Skipped where there is none.
"""

import json
import os
import statistics
import subprocess
from pathlib import Path

import pytest

from conftest import PROG, TARE

pytestmark = [
    pytest.mark.gpu,
    pytest.mark.skipif(not Path("/dev/nvidia0").exists(), reason="no NVIDIA GPU here"),
]
GPU = {"TARE_LAYERS": "frames,ops,cuda,gpu"}

WORK = """
import sys, time, torch
from torch.profiler import ProfilerActivity, profile
x = torch.randn(2048, 2048, device="cuda")
def work():
    for _ in range(200):
        (x @ x).relu().sum()
    torch.cuda.synchronize()
work()
if "profiler" in sys.argv:
    with profile(activities=[ProfilerActivity.CUDA]) as p:
        work()
    for e in p.profiler.kineto_results.events():
        if "CUDA" in str(e.device_type()):
            print(e.duration_ns(), e.name())
else:
    work()
"""


def tare_json(*args):
    done = subprocess.run([TARE, *args, "--format", "json"], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def state(trace):
    layers = tare_json("info", trace)["traces"][0]["layers"]
    return next((one["state"], one["detail"]) for one in layers if one["layer"] == "gpu")


def test_programs_are_unchanged(python, run_bare_and_traced):
    run = run_bare_and_traced([python, PROG / "gpu_work.py"], returncode=0, trace_env=GPU)
    assert state(run.trace)[0] == "on", state(run.trace)
    report = tare_json("report", run.trace)
    for device in report["devices"]:
        assert device["busy_ns"] + device["idle_ns"] == pytest.approx(device["wall_ns"], abs=5)
        assert device["idle"]["unknown_ns"] < device["wall_ns"] / 100
    assert report["devices"][0]["graphs"] == 7
    rows = {row["op"]: row for row in report["ops"]}
    assert rows["aten::matmul"]["kernels_per_call"] >= 1
    assert rows["aten::sigmoid"]["kernels_per_call"] == 1
    assert rows["MmBackward0"]["kernels_per_call"] >= 1


def test_kernel_times_are_the_profilers(python, run_traced):
    """The median of each kernel with many calls, within 1 %."""
    ours = run_traced([python, "-c", WORK], trace_env=GPU)
    theirs = subprocess.run([python, "-c", WORK, "profiler"], capture_output=True, text=True)
    assert ours.returncode == 0 and theirs.returncode == 0, theirs.stderr
    assert state(ours.trace)[0] == "on", state(ours.trace)
    durations = {}
    for line in theirs.stdout.splitlines():
        duration, _, name = line.partition(" ")
        durations.setdefault(name, []).append(int(duration))
    kernels = {kernel["name"]: kernel for kernel in tare_json("report", ours.trace)["kernels"]}
    compared = 0
    for name, values in durations.items():
        if len(values) >= 100 and name in kernels:
            found = kernels[name]["median_ns"]
            assert found == pytest.approx(statistics.median(values), rel=0.01, abs=50), name
            compared += 1
    assert compared >= 2


def test_the_profiler_takes_over(python, run_traced):
    run = run_traced([python, "-c", WORK, "profiler"], trace_env=GPU)
    assert run.returncode == 0
    found, detail = state(run.trace)
    assert found == "off" and "handed over" in detail
    names = [line.partition(" ")[2] for line in run.stdout.splitlines()]
    assert sum("reduce_kernel" in name for name in names) == 200


def test_figures(python, run_traced):
    """For the reader: what a launch and an .item() cost here."""
    run = run_traced([python, PROG / "gpu_work.py"], trace_env=GPU)
    rows = {row["op"]: row for row in tare_json("report", run.trace)["ops"]}
    print(os.linesep.join(
        f"{op}: {json.dumps({k: rows[op][k] for k in ('fixed_ns', 'wait_ns', 'device_ns', 'start_delay_ns')})}"
        for op in ("aten::add.Tensor", "aten::sigmoid", "aten::item") if op in rows
    ))  # fmt: skip
