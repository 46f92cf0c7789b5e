"""torch.profiler around work, in the middle of other work (or, with `first`, from the start). Prints what it saw."""

import sys
import time
from collections import Counter

import torch
from torch.profiler import ProfilerActivity, profile


def work():
    x = torch.ones(64, 64, device="cuda")
    for _ in range(10):
        (x @ x + x).sum().item()
    torch.cuda.synchronize()


if "first" not in sys.argv:
    work()
with profile(activities=[ProfilerActivity.CPU, ProfilerActivity.CUDA]) as profiler:
    if "first" in sys.argv:
        torch.cuda.init()
    work()
work()
seen = Counter()
longest = {}
for event in profiler.profiler.kineto_results.events():
    if "CUDA" in str(event.device_type()):
        seen[event.name()] += 1
        # To 5 %: the simulated clock is converted.
        longest[event.name()] = max(longest.get(event.name(), 0), event.duration_ns())
for name, count in sorted(seen.items()):
    print(count, name, round(longest[name] / 1000))
time.sleep(0.1)
