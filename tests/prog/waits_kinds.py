"""
Waits of every kind, one function each, on a line that says `# WAIT kind`, in a loop of PASSES. What the
simulated device itself counted for each function goes, as JSON, to the file that WAITS_TOLD names.
"""

import json
import os
import sys
import threading
import time
from pathlib import Path

import torch

PASSES = 30
D = "cuda"
x = torch.ones(64, device=D)
big = torch.ones(1 << 16)
event = torch.cuda.Event()
side = torch.cuda.Stream()


def work(t, launches=10):
    for _ in range(launches):
        t.add_(1.0)


def think():
    """Host time without any CUDA call: the device has nothing to do meanwhile."""
    until = time.perf_counter() + 0.0003
    while time.perf_counter() < until:
        pass


def item():
    for _ in range(PASSES):
        work(x)
        x[0].item()  # WAIT scalar-read
        think()


def cpu():
    for _ in range(PASSES):
        work(x)
        x.cpu()  # WAIT device-to-host
        think()


def device():
    for _ in range(PASSES):
        work(x)
        torch.cuda.synchronize()  # WAIT device-sync
        think()


def events():
    for _ in range(PASSES):
        work(x)
        event.record()
        event.synchronize()  # WAIT event-sync
        think()


def events_and_more():
    for _ in range(PASSES):
        work(x, 2)
        event.record()
        work(x, 20)
        event.synchronize()  # WAIT event-sync
        work(x)
    torch.cuda.synchronize()


def pageable():
    for _ in range(PASSES):
        work(x)
        big.to(D, non_blocking=True)  # WAIT pageable-copy
        think()


def blocking():
    for _ in range(PASSES):
        work(x)
        big.to(D)  # WAIT host-to-device
        think()


def streams():
    with torch.cuda.stream(side):
        for _ in range(PASSES):
            work(x)
            side.synchronize()  # WAIT stream-sync
            think()


def freed():
    for _ in range(PASSES):
        lots = torch.empty(1 << 25, device=D)
        work(x)
        del lots
        torch.cuda.empty_cache()  # WAIT memory
        think()


def full_queue():
    for _ in range(PASSES):
        for _ in range(6):
            x.add_(1.0)  # WAIT launch
    torch.cuda.synchronize()


def two_threads():
    def reader(t, stream):
        with torch.cuda.stream(stream):
            for _ in range(PASSES):
                work(t)
                t[0].item()  # WAIT scalar-read
                think()

    mine = [(torch.ones(64, device=D), torch.cuda.Stream()) for _ in range(2)]
    torch.cuda.synchronize()
    threads = [threading.Thread(target=reader, args=one) for one in mine]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


KINDS = (item, cpu, device, events, events_and_more, pageable, blocking, streams, freed, full_queue, two_threads)


def counted():
    """{function: [calls, wait_ns, idle_ns]} so far."""
    if "TARE_SIM_COUNTS" not in os.environ:
        return {}
    sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "sim"))
    import counts

    total = {}
    path = os.environ["TARE_SIM_COUNTS"].replace("%p", str(os.getpid()))
    for (name, _), cell in counts.read(path).total().items():
        old = total.get(name, (0, 0, 0))
        total[name] = [old[0] + cell.calls, old[1] + cell.wait_ns, old[2] + cell.idle_ns]
    return total


def difference(after, before):
    return {
        name: [a - b for a, b in zip(cell, before.get(name, (0, 0, 0)))] for name, cell in after.items()
    }


def main():
    global PASSES
    told = {}
    for kind in KINDS:
        work(x, 1)  # ends the gap of the wait before
        torch.cuda.synchronize()
        work(x, 1)
        before = counted()
        PASSES = 1
        kind()
        PASSES = 30
        kind()
        work(x, 1)
        told[kind.__name__] = difference(counted(), before)
    if "WAITS_TOLD" in os.environ:
        Path(os.environ["WAITS_TOLD"]).write_text(json.dumps(told))


# What copies cost where there is nothing to wait for.
for _ in range(5):
    torch.cuda.synchronize()
    big.to(D)
main()
