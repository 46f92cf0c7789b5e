"""
What only looks like a synchronisation is none; what is one on purpose is told apart.

Where each of the 24 traps is tested:

    CPU tensors, optimizers, copies to where it is already           cpu_reads, optimizer_step
    pinned and asynchronous copies                                   pinned_copies
    synchronises and benchmark helpers on purpose                    events, several_reads, benchmark
    queries; a loop of them                                          queries, polls
    elapsed_time; waits on the device                                events, streams
    now and then; checkpoints                                        evaluated; cases/a1b
    other threads; an idle device                                    other_thread, idle
    first steps                                                      tests/test_waits.py, cases/g1
    counters of memory; metadata                                     counters, queries, metadata
    masks that need no size                                          masked, cases/b2
    capture and replay                                               captured
    waits on autograd's threads                                      backward_reads
    long launches                                                    tests/test_waits.py, unit/test_analyzer_ledger.c
    settings that make everything wait                               test_settings below
    profilers                                                        profiled
    whether memory is pinned is said where calls tell alone          cases/e3, pinned_copies
    reads that a token loop needs                                    a hint of hints.def; transformers is not in these tests
    the gradient scaler                                              scaled

What cannot be run here: NCCL's watchdog and its barrier, Triton's do_bench and autotuner (no device that computes), Nsight
Systems and compute-sanitizer themselves (their environment variables are set instead), managed memory that
the host reads in place (no page faults on the simulated device), allocators of other libraries.
"""

import json
import re
import subprocess

import pytest
from conftest import PROG, TARE

pytest.importorskip("torch")

SOURCE = (PROG / "syncs_traps.py").read_text().splitlines()


def bodies():
    """{function: [line numbers]}"""
    found = {}
    name = None
    for number, line in enumerate(SOURCE, 1):
        start = re.match(r"(?:def|class) (\w+)", line)
        if start:
            name = start[1]
        elif line and not line.startswith(" "):
            name = None
        if name:
            found.setdefault(name, []).append(number)
    return found


BODIES = bodies()
TRAPS = [name for name in BODIES if name not in ("Reads", "drive", "run")]
POLLED = next(i for i, line in enumerate(SOURCE, 1) if "# POLLING" in line)


@pytest.fixture(scope="module")
def result(tmp_path_factory, trace_on_device):
    """All traps in one run: starting torch is what takes time."""
    folder = trace_on_device(tmp_path_factory.mktemp("traps"), PROG / "syncs_traps.py", *TRAPS)
    done = subprocess.run([TARE, "syncs", "--format", "json", folder], capture_output=True, check=True)
    return json.loads(done.stdout)


@pytest.fixture(scope="module")
def findings(result):
    return result["findings"]


def is_at(site, number):
    return site and site["file"].endswith("syncs_traps.py") and site["line"] == number


def check_reads(found, kind, count, where):
    same = [one for one in found if one["kind"] == kind and not one["explicit"]]
    assert sum(one["count"] for one in same) == 10 * count, f"{where}: {found}"
    return same


@pytest.mark.parametrize("trap", TRAPS)
def test_trap(trap, findings):
    for number in BODIES[trap] + (BODIES["Reads"] if trap == "backward_reads" else []):
        line = SOURCE[number - 1]
        where = f"{trap}, line {number}: {line.strip()}"
        found = [one for one in findings if is_at(one["user_site"], number) or is_at(one["site"], number)]
        frequent = [one for one in found if one["class"] != "once"]
        if "# CLEAN" in line:
            assert not frequent, f"{where}: {found}"
        explicit = re.search(r"# EXPLICIT ([\w-]+)", line)
        if explicit:
            assert [one["kind"] for one in frequent] == [explicit[1]], where
            assert frequent[0]["explicit"] and frequent[0]["count"] == 10, where
        if "# PERIODIC" in line:
            assert [one["class"] for one in found] == ["periodic"], f"{where}: {found}"
        if "# DESIGN" in line:
            assert frequent and all(one["by_design"] for one in frequent), f"{where}: {found}"
        kind = re.search(r"# ([a-z-]+) (\d+)$", line)
        if kind and trap == "other_thread":
            (same,) = check_reads(found, kind[1], int(kind[2]), where)
            assert same["loop"] is None and not same["thread"].startswith("1 ")
        elif kind:
            same = check_reads(frequent, kind[1], int(kind[2]), where)
            assert all(one["class"] == "hot" for one in same), f"{where}: {same}"
        if kind and trap == "backward_reads":
            lines = {one["backward_site"]["line"] for one in same}
            assert {SOURCE[at - 1].strip()[-11:] for at in lines} == {".backward()"}


def test_polling(result):
    """A row of its own where one line asks more than a thousand times a pass, and nowhere else."""
    (row,) = result["polling"]
    assert is_at(row["user_site"], POLLED) and row["kind"] == "polling"
    assert row["count"] == 20000 and row["wait_ns"] is None and "synchronize()" in row["hint"]
    assert not [one for one in result["findings"] if one["kind"] == "polling"]


SETTINGS = """
import time, torch

D = "cuda"


def main():
    w = torch.randn(64, 64, device=D, requires_grad=True)
    for _ in range(10):
        with torch.autograd.detect_anomaly(check_nan=True):
            (w * 2).relu().sum().backward()
    for _ in range(10):
        x = torch.ones(3_000_000, device=D)
        x.sum().item()
        del x
    time.sleep(0.2)


main()
"""


def run_with(folder, trace_on_device, env):
    trace_on_device(folder, "-W", "ignore", "-c", SETTINGS, env=env)

    def syncs(*options, status=0):
        done = subprocess.run([TARE, "syncs", *options, folder], capture_output=True, text=True, check=False)
        assert done.returncode == status, done.stderr
        return done

    return syncs


def test_settings(tmp_path, trace_on_device):
    """Each tensor is allocated by the driver, each node is read: not by the program's wish."""
    env = {"PYTORCH_NO_CUDA_MEMORY_CACHING": "1", "CUDA_LAUNCH_BLOCKING": "0"}
    syncs = run_with(tmp_path, trace_on_device, env)
    found = json.loads(syncs("--format", "json").stdout)
    settings = {one["setting"]: one["left_out"] for one in found["settings"]}
    assert set(settings) == {"PYTORCH_NO_CUDA_MEMORY_CACHING", "detect_anomaly"} and min(settings.values()) > 0
    (read,) = (one for one in found["findings"] if not one["left_out"] and one["class"] != "once")
    assert read["kind"] == "scalar-read" and read["count"] == 10
    kinds = {one["kind"] for one in found["findings"] if one["left_out"] == "PYTORCH_NO_CUDA_MEMORY_CACHING"}
    assert kinds == {"memory"}
    text = syncs().stdout
    assert text.count("PYTORCH_NO_CUDA_MEMORY_CACHING is on") == text.count("detect_anomaly is on") == 1
    assert "  memory  " not in text
    assert "scalar-read" in syncs("--fail-on", "hot", status=1).stdout.split("the gate failed")[1]
    assert syncs("--fail-on", "memory").returncode == 0


def test_blinding_settings(tmp_path, trace_on_device):
    env = {"CUDA_LAUNCH_BLOCKING": "1", "NV_SANITIZER_INJECTION_PORT_BASE": "4242"}
    syncs = run_with(tmp_path, trace_on_device, env)
    found = json.loads(syncs("--format", "json").stdout)
    names = {one["setting"] for one in found["settings"]}
    assert names == {"CUDA_LAUNCH_BLOCKING", "NV_SANITIZER_INJECTION_PORT_BASE", "detect_anomaly"}
    assert found["findings"] and all(one["left_out"] for one in found["findings"] if not one["by_design"])
    text = syncs().stdout
    assert "CUDA_LAUNCH_BLOCKING is on" in text and "scalar-read" not in text
    # Names alone are in a trace, and a gate that cannot tell does not pass.
    dump = subprocess.run([TARE, "dump", "--records", tmp_path], capture_output=True, text=True, check=True)
    assert "value=CUDA_LAUNCH_BLOCKING NV_SANITIZER_INJECTION_PORT_BASE" in dump.stdout
    assert "4242" not in re.search("key=settings.*", dump.stdout)[0]
    assert "CUDA_LAUNCH_BLOCKING" in syncs("--fail-on", "hot", status=2).stderr
