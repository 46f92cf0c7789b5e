"""
How long the host waited, and how long the device then had nothing to do, against the simulated device's own
account: tests/sim. Both measure the same calls, so they agree however fast the machine is; where other
programs take the processor in between two measurements, a run is done again.
"""

import json
import re
import subprocess
from types import SimpleNamespace

import pytest
from conftest import PROG, TARE

pytest.importorskip("torch")

SOURCE = PROG / "waits_kinds.py"
FAST_US, SLOW_US = 0.5, 200
ATTEMPTS = 4

# Calls that wait for the device on the lines of a kind.
FUNCTIONS = {
    "scalar-read": ("cudaMemcpyAsync", "cudaStreamSynchronize"),
    "device-to-host": ("cudaMemcpyAsync", "cudaStreamSynchronize"),
    "host-to-device": ("cudaMemcpyAsync", "cudaStreamSynchronize"),
    "pageable-copy": ("cudaMemcpyAsync",),
    "device-sync": ("cudaDeviceSynchronize",),
    "event-sync": ("cudaEventSynchronize",),
    "stream-sync": ("cudaStreamSynchronize",),
    "memory": ("cudaFree",),
    "launch": ("__cudaLaunchKernel", "cudaLaunchKernel"),
}


def waits():
    """[(function, line, kind)]"""
    function = None
    for number, line in enumerate(SOURCE.read_text().splitlines(), 1):
        start = re.match(r"def (\w+)", line)
        function = start[1] if start else function
        wait = re.search(r"# WAIT ([\w-]+)$", line)
        if wait:
            yield function, number, wait[1]


WAITS = list(waits())


def tare(command, trace, *options):
    done = subprocess.run([TARE, command, "--format", "json", *options, trace], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def is_at(row, number):
    site = row["user_site"] or row["site"]
    return site and site["file"].endswith(SOURCE.name) and site["line"] == number


def differences(trace, told):
    """{(function, "wait" or "gap"): text} where the two accounts do not agree."""
    syncs = tare("syncs", trace)
    findings = syncs["findings"] + syncs["warm_up"]
    ops = tare("ops", trace)["ops"]
    wrong = {}
    for function, number, kind in WAITS:
        cells = [cell for name, cell in told[function].items() if name in FUNCTIONS[kind]]
        simulated = {"wait": sum(cell[1] for cell in cells), "gap": sum(cell[2] for cell in cells)}
        rows = [row for row in findings if is_at(row, number) and row["kind"] == kind]
        if kind == "launch":
            # No finding: the ledger says that the loop is device-bound.
            assert not [row for row in findings if is_at(row, number)]
            rows = [row for row in ops if is_at(row, number) and row["op"].startswith("aten::add_")]
            seen = {"wait": sum(row["wait_ns"]["mean"] * row["calls"] for row in rows)}
            count = sum(row["calls"] for row in rows)
        else:
            seen = {what: sum(row[f"{what}_ns"] for row in rows) for what in ("wait", "gap")}
            count = sum(row["count"] for row in rows)
        assert count >= 31, (function, rows)
        for what, took in seen.items():
            allowed = max(0.05 * simulated[what], 20_000 * count)
            if abs(took - simulated[what]) > allowed:
                wrong[function, what] = f"{took / 1e6:.3f}, simulated {simulated[what] / 1e6:.3f} ms of {count}"
    return wrong


@pytest.mark.parametrize("kernel_us", (FAST_US, SLOW_US))
def test_account(kernel_us, tmp_path, run_bare_and_traced, run_traced, sim, python):
    # A thread that is not woken in time is waited for longer than its stream was busy.
    open_ones = {
        (function, what)
        for function, _, _ in WAITS
        for what in ("wait", "gap")
        if (function, what) != ("two_threads", "gap") or kernel_us == FAST_US
    }
    for attempt in range(ATTEMPTS):
        told = tmp_path / f"told-{attempt}"
        env = {
            "TARE_SIM_KERNEL_US": kernel_us,
            "TARE_SIM_QUEUE": 64,
            "TARE_SIM_COUNTS": tmp_path / f"counts-{attempt}-%p",
            "WAITS_TOLD": told,
        }
        start = run_traced if attempt else run_bare_and_traced
        run = start(sim([python, SOURCE]), env=env)
        assert run.returncode == 0, run.stderr
        wrong = differences(run.trace, json.loads(told.read_text()))
        open_ones &= set(wrong)
        if not open_ones:
            return
    assert not {one: wrong[one] for one in open_ones}


def test_work_behind_an_event(tmp_path, run_traced, sim, python):
    """An event that more work follows: the device has something to do when the wait for it ends."""
    run = run_traced(sim([python, SOURCE]))
    number = next(number for function, number, _ in WAITS if function == "events_and_more")
    (row,) = [row for row in tare("syncs", run.trace)["findings"] if is_at(row, number)]
    assert row["gap_ns"] == 0


@pytest.fixture(scope="module")
def verdict():
    def verdict(trace, place):
        command = [TARE, "syncs", "--loop", place, trace]
        text = subprocess.run(command, capture_output=True, text=True, check=True).stdout
        loop = tare("syncs", trace, "--loop", place)["main_loop"]
        return SimpleNamespace(loop=loop, text=" ".join(text.split()))

    return verdict


def test_verdict(run_bare_and_traced, sim, python, verdict):
    bound = {}
    for kernel_us in (FAST_US, 500):
        run = run_bare_and_traced(
            sim([python, PROG / "waits_verdict.py"]), env={"TARE_SIM_KERNEL_US": kernel_us}, returncode=0
        )
        said = verdict(run.trace, "waits_verdict.py:20")
        bound[kernel_us] = said.loop["verdict"]
        share = said.loop["ledger"]["wait_ns"] / (said.loop["ledger"]["wall_ns"] - said.loop["ledger"]["tare_ns"])
        assert said.loop["passes"] == 40
        assert said.loop["wait_share"] == pytest.approx(share, abs=0.005)
        assert f"{said.loop['verdict']}: waits are {100 * share:.0f} % of it" in said.text
    assert bound == {FAST_US: "overhead-bound", 500: "device-bound"}


def test_full_queue_verdict(run_traced, sim, python, tmp_path, verdict):
    """No line waits, but launches do, most of them."""
    script = tmp_path / "launches.py"
    script.write_text(
        "import torch\n"
        "x = torch.ones(64, device='cuda')\n"
        "for i in range(300):\n"
        "    x.add_(1.0)\n"
        "    x.mul_(1.0)\n"
    )
    run = run_traced(sim([python, script]), env={"TARE_SIM_KERNEL_US": 300, "TARE_SIM_QUEUE": 8})
    loop = verdict(run.trace, "launches.py:3").loop
    assert (loop["passes"], loop["verdict"]) == (300, "device-bound")
    assert loop["wait_share"] > 0.5


def test_what_is_waited_for(run_traced, sim, python, tmp_path, verdict):
    """Work queued before, or work of the line itself; the share of the loop, and the order, by both."""
    script = tmp_path / "steps.py"
    script.write_text(
        "import torch, time\n"
        "x = torch.ones(64, device='cuda')\n"
        "def own():\n"
        "    x.add_(1.0).add_(1.0).add_(1.0).mul_(1.0)[0].item()\n"
        "def earlier():\n"
        "    x[0].item()\n"
        "def idle():\n"
        "    x[0].item()\n"
        "    time.sleep(0.002)\n"
        "for i in range(20):\n"
        "    for _ in range(9):\n"
        "        x.mul_(1.0)\n"
        "    earlier()\n"
        "    own()\n"
        "    idle()\n"
    )
    run = run_traced(sim([python, script]), env={"TARE_SIM_KERNEL_US": 300})
    result = tare("syncs", run.trace, "--loop", "steps.py:10")
    found = {
        row["user_site"]["line"]: row for row in result["findings"] if row["kind"] == "scalar-read"
    }
    assert {line: row["waits_for"] for line, row in found.items()} == {
        4: "own-work",
        6: "earlier-work",
        8: None,
    }
    queued = {line: row["queued"] for line, row in found.items()}
    assert queued == pytest.approx({4: 4, 6: 9, 8: 0}, abs=0.1)
    total = result["main_loop"]["pass_ns"]["mean"] * 20
    for row in found.values():
        assert row["share"] == pytest.approx((row["wait_ns"] + row["gap_ns"]) / total, abs=0.001)
    hot = [row["share"] for row in result["findings"] if row["class"] == "hot" and not row["explicit"]]
    assert hot == sorted(hot, reverse=True) and len(hot) == 3
    assert sum(hot) <= 1.02
    assert "It waits for GPU work queued before" in verdict(run.trace, "steps.py:10").text
