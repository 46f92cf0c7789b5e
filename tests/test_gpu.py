"""
The layer gpu: what devices did, exactly as simulated; CUPTI shared with others; its errors.
"""

import collections
import json
import re
import signal
import subprocess
import sys
import sysconfig
import time
from pathlib import Path

import pytest

from conftest import LIBTARE, PROG, ROOT, TARE, clean_environment

sys.path.insert(0, str(ROOT / "tests" / "sim"))
import counts  # noqa: E402

HEADERS = Path(sysconfig.get_path("purelib")) / "nvidia" / "cu13" / "include"
GPU = {"TARE_LAYERS": "frames,ops,cuda,gpu"}
ALONE = {"TARE_LAYERS": "cuda,gpu"}  # without the frames of imports, which are many
BEGIN, END, COPY, SET, GRAPH = range(5)


def tare_json(*args):
    done = subprocess.run([TARE, *args, "--format", "json"], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def layer(trace, name="gpu"):
    """State and detail of the layer, as `tare info` has them."""
    layers = tare_json("info", trace)["traces"][0]["layers"]
    found = [(one["state"], one["detail"]) for one in layers if one["layer"] == name]
    assert len(found) == 1
    return found[0]


def without_times(output):
    """torch's profiler says on stderr when it starts and stops."""
    return re.sub(r"USDT:[^\n]*\n", "", output)


def works(dump, what=None):
    """Kernels, or other works of that kind."""
    if what is None:
        return dump.events("GPU_KERNEL")
    return [event for event in dump.events("GPU_WORK") if event["what"] == what]


@pytest.mark.skipif(not (HEADERS / "cupti.h").exists(), reason="no headers of CUPTI")
def test_layouts_are_those_of_the_headers():
    subprocess.run(
        ["gcc", "-std=gnu17", "-fsyntax-only", f"-I{ROOT}", "-isystem", HEADERS, "-idirafter",
         ROOT / "tests/sim/include", PROG / "gpu_layout.c"],
        check=True,
    )  # fmt: skip


@pytest.fixture(scope="module")
def kernel_us():
    return 20


@pytest.mark.parametrize("order", ["end", "reverse"])
def test_as_simulated(order, sim, python, run_bare_and_traced, dump, tmp_path, kernel_us):
    env = {
        "TARE_SIM_COUNTS": f"{tmp_path}/counts-%p",
        "TARE_SIM_KERNEL_US": str(kernel_us),
        "TARE_SIM_DEVICES": "2",
        "TARE_SIM_CUPTI_ORDER": order,
    }
    run = run_bare_and_traced(
        sim([python, PROG / "gpu_work.py"]), returncode=0, env=env, trace_env=GPU
    )
    found = dump(run.trace)
    assert layer(run.trace)[0] == "on"
    pid = int(run.trace.name.split("-")[1])
    counted = counts.read(tmp_path / f"counts-{pid}")
    launches = sum(
        counted.calls(name)
        for name in ("__cudaLaunchKernel", "cudaLaunchKernel", "cudaLaunchKernelExC")
    )
    gemms = counted.calls("cublasSgemm_v2")
    # Two launches went into the graph.
    kernels = works(found)
    assert len(kernels) == launches - 2 + gemms and gemms == 2 * 20
    assert len(works(found, GRAPH)) == counted.calls("cudaGraphLaunch") == 7
    queues = {record["queue"]: record for record in found.records("GPU_QUEUE")}
    assert {queue["device"] for queue in queues.values()} == {0, 1}
    assert len({queue["stream"] for queue in queues.values() if queue["device"] == 0}) >= 3

    # Times are in clock units: all but those of libraries took the same.
    info = tare_json("info", run.trace)["traces"][0]
    names = {record["string"]: record["text"] for record in found.records("STRING")}
    unit_ns = info["clock"]["unit_ns"] if isinstance(info.get("clock"), dict) else info["unit_ns"]
    for kernel in kernels:
        expected = 2000 if "cublas" in names[kernel["name"]] else kernel_us * 1000
        assert kernel["duration"] * unit_ns == pytest.approx(expected, rel=0.01, abs=5)

    # Each belongs to one call, and each call outside of the capture led to something.
    calls = collections.Counter(event["correlation"] for event in found.events("CORRELATION"))
    assert set(calls.values()) == {1}
    done = [event["correlation"] for event in kernels + works(found, GRAPH) + works(found, COPY)]
    done += [event["correlation"] for event in works(found, SET)]
    assert set(done) <= set(calls) and len(done) == len(set(done))
    assert len(calls) - len(done) == 2

    # Within a stream nothing overlaps.
    ends = collections.defaultdict(list)
    for kernel in kernels + works(found, COPY):
        start = kernel["time_ns"] / unit_ns - kernel["early"]
        ends[kernel["queue"]].append((start, start + kernel["duration"]))
    for spans in ends.values():
        spans.sort()
        assert all(a[1] <= b[0] + 100 / unit_ns for a, b in zip(spans, spans[1:]))

    report = tare_json("report", run.trace)
    assert [device["device"] for device in report["devices"]] == [0, 1]
    for device in report["devices"]:
        assert device["busy_ns"] + device["idle_ns"] == pytest.approx(device["wall_ns"], abs=5)
        assert sum(device["idle"].values()) == pytest.approx(device["idle_ns"], abs=5)
        assert device["idle"]["unknown_ns"] == 0
        assert device["kernel_ns"] + device["copy_ns"] == pytest.approx(device["busy_ns"], abs=5)
    assert sum(device["kernels"] for device in report["devices"]) == len(kernels)
    assert report["devices"][0]["graphs"] == 7
    by_name = {kernel["name"]: kernel for kernel in report["kernels"]}
    assert by_name["cublasSgemm_v2_kernel"]["count"] == gemms
    assert by_name["cublasSgemm_v2_kernel"]["median_ns"] == pytest.approx(2000, rel=0.02)
    assert sum(kernel["count"] for kernel in report["kernels"]) == len(kernels) + 7

    # To operator and line, also of autograd's threads.
    lines = {
        (row["op"], row["user_site"]["line"]): row for row in report["ops"] if row.get("user_site")
    }
    source = (PROG / "gpu_work.py").read_text().splitlines()
    for text, op in (("x = x + 1", "aten::add.Tensor"), ("x.sigmoid()", "aten::sigmoid")):
        number = next(i for i, line in enumerate(source, 1) if text in line)
        row = lines[op, number]
        assert row["kernels_per_call"] == 1 and row["calls"] == 20
        assert row["device_ns"] == pytest.approx(kernel_us * 1000, rel=0.01)
        assert row["device_total_ns"] == pytest.approx(20 * kernel_us * 1000, rel=0.01)
        assert row["start_delay_ns"] >= 0
    number = next(i for i, line in enumerate(source, 1) if "x @ w + x" in line)
    assert lines["aten::matmul", number]["kernels_per_call"] == 1
    assert lines["MmBackward0", number]["kernels_per_call"] == 1
    assert lines["ReluBackward0", number]["device_ns"] == pytest.approx(kernel_us * 1000, rel=0.01)
    total = sum(row["device_total_ns"] for row in report["ops"])
    everything = sum(kernel["total_ns"] for kernel in report["kernels"])
    assert total >= everything - 1


def test_what_libraries_launch(sim, python, run_traced, dump):
    """They have a runtime of their own: CUPTI alone sees them."""
    command = sim([python, PROG / "gpu_work.py"])
    with_gpu, without = run_traced(command, trace_env=GPU), run_traced(command)
    names = {record["text"] for record in dump(with_gpu.trace).records("STRING")}
    assert "cublasSgemm_v2_kernel" in names
    functions = {record["name"] for record in dump(with_gpu.trace).records("FUNCTION")}
    assert "cuLaunchKernel" in functions
    rows = {row["op"]: row for row in tare_json("report", with_gpu.trace)["ops"]}
    assert rows["aten::matmul"]["launches"] == rows["aten::matmul"]["calls"]

    report = tare_json("report", without.trace)
    assert any("launch is not seen" in note for note in report["notes"])
    assert report["devices"] is None and report["kernels"] is None
    assert all(row["device_ns"] is None for row in report["ops"])
    text = subprocess.run([TARE, "ops", "--device", without.trace], capture_output=True, text=True)
    assert "unknown" in text.stdout and text.returncode == 0


def test_profiler_takes_over(sim, python, run_bare_and_traced, dump):
    """What torch.profiler sees is as without tare; we end where it begins."""
    run = run_bare_and_traced(
        sim([python, PROG / "gpu_profiler.py"]),
        env={"TARE_SIM_KERNEL_US": "50"},
        trace_env=ALONE,
        mask=without_times,
    )
    assert run.returncode == 0 and "cublasSgemm_v2_kernel" in run.stdout
    state, detail = layer(run.trace)
    assert state == "off" and "handed over" in detail
    found = dump(run.trace)
    # 10 passes of gemm, add, sum; and what made x.
    assert len(works(found)) == 31
    assert [event["what"] for event in works(found, BEGIN) + works(found, END)] == [BEGIN, END]
    assert tare_json("info", run.trace)["traces"][0]["lost"] == 0
    report = tare_json("report", run.trace)
    assert any("part of the run: handed over" in note for note in report["notes"])
    assert report["devices"][0]["kernels"] == 31


def test_profiler_was_first(sim, python, run_bare_and_traced, dump):
    run = run_bare_and_traced(
        sim([python, PROG / "gpu_profiler.py", "first"]),
        env={"TARE_SIM_KERNEL_US": "50"},
        trace_env=ALONE,
        mask=without_times,
    )
    assert run.returncode == 0 and "cublasSgemm_v2_kernel" in run.stdout
    state, detail = layer(run.trace)
    assert state == "off" and "something else" in detail
    assert not works(dump(run.trace))


def test_without_a_driver(sim, python, run_bare_and_traced):
    """NVIDIA's own CUPTI answers "unknown" to everything there."""
    if not list(HEADERS.parent.glob("lib/libcupti.so.13")):
        pytest.skip("no CUPTI installed")
    run = run_bare_and_traced(
        sim([python, PROG / "gpu_work.py"], "--cupti", "real"), returncode=0, trace_env=ALONE
    )
    assert layer(run.trace) == ("off", "cuptiSubscribe: CUPTI_ERROR_UNKNOWN (999)")
    text = subprocess.run([TARE, "info", run.trace], capture_output=True, text=True).stdout
    assert sum(" gpu " in line for line in text.splitlines()) == 1


@pytest.mark.parametrize(
    "failing, why",
    [
        ("cuptiSubscribe:39", "another tool uses CUPTI"),
        ("cuptiActivityRegisterTimestampCallback:999", "TimestampCallback"),
        ("cuptiActivityRegisterCallbacks:1", "RegisterCallbacks"),
        ("cuptiEnableCallback:999", "cuptiEnableCallback"),
        ("cuptiActivityEnable:999", "CONCURRENT_KERNEL"),
    ],
)
def test_errors(failing, why, sim, python, run_bare_and_traced, dump):
    run = run_bare_and_traced(
        sim([python, PROG / "gpu_work.py"]),
        returncode=0,
        env={"TARE_SIM_CUPTI_FAIL": failing},
        trace_env=ALONE,
    )
    state, detail = layer(run.trace)
    assert state == "off" and why in detail
    assert not works(dump(run.trace)) and dump(run.trace).events("LAUNCH")


def test_attached_tools_come_first(sim, python, run_traced):
    run = run_traced(
        sim([python, PROG / "gpu_work.py"]),
        env={"CUDA_INJECTION64_PATH": "/nowhere.so"},
        trace_env=ALONE,
    )
    assert run.returncode == 0
    assert layer(run.trace) == ("off", "another tool is attached (CUDA_INJECTION64_PATH)")


def test_dropped_records(sim, python, run_traced, dump):
    run = run_traced(
        sim([python, PROG / "gpu_work.py"]), env={"TARE_SIM_CUPTI_DROP": "10"}, trace_env=ALONE
    )
    lost = [r for r in dump(run.trace).records("LOST") if "CUPTI" in r["reason"]]
    assert sum(record["events"] for record in lost) > 5
    report = tare_json("report", run.trace)
    for device in report["devices"]:
        assert device["busy_ns"] + device["idle_ns"] == pytest.approx(device["wall_ns"], abs=5)


FORKS = """
import os, time, torch
x = torch.ones(8, device="cuda")
(x + x).sum().item()
pid = os.fork()
if not pid:
    torch.ones(3) + 1
    os._exit(7)
assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 7
(x + x).sum().item()
print("done")
time.sleep(0.1)
"""


def test_forked_child(sim, python, run_bare_and_traced, dump):
    run = run_bare_and_traced(sim([python, "-c", FORKS]), returncode=0, trace_env=GPU)
    parent, child = run.traces
    assert layer(parent)[0] == "on" and len(works(dump(parent))) == 5
    assert layer(child) == ("off", "not in a forked child")
    assert not dump(child).events("GPU_KERNEL", "GPU_WORK", "CORRELATION")


ENDLESS = """
import time, torch
x = torch.ones(8, device="cuda")
print("ready", flush=True)
while True:
    (x + x).sum().item()
    time.sleep(0.001)
"""


def test_killed(sim, python, tmp_path, dump):
    """What CUPTI had delivered is in the trace: about all but the last second."""
    env = clean_environment({**ALONE, "LD_PRELOAD": LIBTARE, "TARE_OUTPUT": f"{tmp_path}/"})
    command = [str(part) for part in sim([python, "-c", ENDLESS])]
    process = subprocess.Popen(command, env=env, stdout=subprocess.PIPE)
    process.stdout.readline()
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline:
        time.sleep(0.5)
        traces = list(tmp_path.glob("*.tare"))
        if traces and len(works(dump(traces[0]))) > 100:
            break
    process.send_signal(signal.SIGKILL)
    process.wait()
    found = dump(next(tmp_path.glob("*.tare")))
    assert len(works(found)) > 100
    assert layer(next(tmp_path.glob("*.tare")))[0] == "on"


def test_record_has_an_option(sim, python, tmp_path):
    done = subprocess.run(
        [TARE, "record", "--no-calibrate", "--gpu", "--output", f"{tmp_path}/", "--",
         *map(str, sim([python, PROG / "gpu_work.py"]))],
        env=clean_environment({}), capture_output=True, text=True,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert layer(next(tmp_path.glob("*.tare")))[0] == "on"
