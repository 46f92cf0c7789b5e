"""
The ledger's lines against the simulated device's own account of the same calls: tests/sim. What takes the
processor away in the middle of a call is in both; in between the two measurements it is in one alone, and
then a run is done again.
"""

import json
import subprocess
import sys

import pytest

from conftest import PROG, ROOT, TARE

pytest.importorskip("torch")
sys.path.insert(0, str(ROOT / "tests" / "sim"))
import counts  # noqa: E402

ATTEMPTS = 5
HOST_US = {
    "__cudaLaunchKernel": 5, "cudaLaunchKernel": 5, "cudaLaunchKernelExC": 5, "cudaMemcpyAsync": 6,
    "cudaMemsetAsync": 6, "cudaMalloc": 30, "cudaFree": 40, "cudaHostAlloc": 50,
    "cudaStreamSynchronize": 5, "cudaDeviceSynchronize": 5, "cublasSgemm_v2": 8,
}  # fmt: skip
# enum trace_category by line.
LINES = {"launch": {1}, "copy": {2, 3}, "memory": {4, 5, 6, 7, 8, 9}, "library": {13}}
WAITS = {1, 2, 3, 9, 10}


def account(counted, dumped):
    """{line: ns}, of the functions that are in the trace."""
    functions = {r["name"]: r["category"] for r in dumped.records("FUNCTION")}
    lines = dict.fromkeys([*LINES, "wait"], 0)
    for (name, _), cell in counted.total().items():
        category = functions.get(name)
        if category in WAITS:
            lines["wait"] += cell.wait_ns
        for line, categories in LINES.items():
            if category in categories:
                lines[line] += cell.host_ns - cell.wait_ns
    return lines


def test_lines_are_the_simulators(run_bare_and_traced, run_traced, sim, python, dump, tmp_path):
    env = {
        "TARE_SIM_COUNTS": f"{tmp_path}/counts-%p",
        "TARE_SIM_HOST_US": ",".join(f"{name}:{us}" for name, us in HOST_US.items()),
        "TARE_SIM_KERNEL_US": 60,
    }
    command = sim([python, PROG / "ledger_account.py"])
    wrong = None
    for attempt in range(ATTEMPTS):
        run = (run_traced if attempt else run_bare_and_traced)(command, env=env)
        assert run.stdout == "done\n"
        done = subprocess.run([TARE, "report", "--format", "json", run.trace], capture_output=True)
        ledger = json.loads(done.stdout)["ledger"]
        pid = int(run.trace.name.split("-")[1])
        expected = account(counts.read(tmp_path / f"counts-{pid}"), dump(run.trace))
        assert min(expected.values()) > 500_000, expected
        wrong = {
            line: f"{ledger[line + '_ns'] / 1e6:.3f} ms, not {ns / 1e6:.3f}"
            for line, ns in expected.items()
            if abs(ledger[line + "_ns"] - ns) > 0.03 * ns
        }
        print(attempt, expected, {line: ledger[line + "_ns"] for line in expected})
        if not wrong:
            return
    pytest.fail(str(wrong))
