"""THREADS CALLS COUNTS: threads that all use the device at once: operators, Python calls. COUNTS: what each did."""

import json
import sys
import threading
import time

import torch

threads, calls, path = int(sys.argv[1]), int(sys.argv[2]), sys.argv[3]
counts = {}
start = threading.Barrier(threads)


def leaf(x):
    return x


def work(n):
    x = torch.ones(8, device="cuda")
    start.wait()
    for _ in range(calls + n):
        leaf(x).add_(1)
    counts[threading.get_native_id()] = calls + n


workers = [threading.Thread(target=work, args=(n,)) for n in range(threads)]
for worker in workers:
    worker.start()
for worker in workers:
    worker.join()
torch.cuda.synchronize()
with open(path, "w") as file:
    json.dump(counts, file)
time.sleep(0.2)
