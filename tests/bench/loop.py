"""One overhead-bound training loop, the yardstick of the benchmarks.

Four blocks of Linear(64,64), LayerNorm, GELU, then Linear(64,10), batch 8, AdamW, loss.item() at
every step: about 400 Python frames, 400 operators and 46 CUDA runtime calls a step. Prints the median
time of a step in ns, and the number of steps; or, as a server (see servers.py), the mean of so many steps as
each line on stdin says.

    loop.py [--steps N | --serve] [--warmup N] [--device cuda|cpu]
            [--tool none|profiler|profiler-stack|cprofile|viztracer]
"""
import argparse
import contextlib
import os
import statistics
import sys
import tempfile
import time

import torch
from torch import nn


def tool_context(name):
    """The peer to run the loop under; what it would write goes to a temporary folder."""
    if name.startswith("profiler"):
        from torch.profiler import ProfilerActivity, profile
        return profile(activities=[ProfilerActivity.CPU], with_stack=name.endswith("stack"))
    if name == "cprofile":
        import cProfile
        return cProfile.Profile()
    if name == "viztracer":
        from viztracer import VizTracer
        return VizTracer(output_file=os.path.join(tempfile.mkdtemp(), "trace.json"), verbose=0,
                         tracer_entries=20_000_000)
    return contextlib.nullcontext()


def time_steps(step, tool, count, unmeasured=0):
    """Times of `count` steps, after some that are not measured, all under the tool."""
    times = []
    with tool_context(tool) as context:
        for number in range(unmeasured + count):
            start = time.perf_counter_ns()
            step()
            if number >= unmeasured:
                times.append(time.perf_counter_ns() - start)
        if tool == "viztracer":
            context.stop()
            context.clear()
    return times


def make_step(device):
    torch.manual_seed(0)
    torch.set_num_threads(1)
    layers = []
    for _ in range(4):
        layers += [nn.Linear(64, 64), nn.LayerNorm(64), nn.GELU()]
    model = nn.Sequential(*layers, nn.Linear(64, 10)).to(device)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    loss_function = nn.CrossEntropyLoss()
    batch = torch.randn(8, 64, device=device)
    target = torch.randint(0, 10, (8,)).to(device)

    def step():
        optimizer.zero_grad()
        loss = loss_function(model(batch), target)
        loss.backward()
        optimizer.step()
        return loss.item()
    return step


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--steps", type=int, default=300)
    parser.add_argument("--serve", action="store_true")
    parser.add_argument("--warmup", type=int, default=50)
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    parser.add_argument("--tool", default="none")
    options = parser.parse_args()

    step = make_step(options.device)
    for _ in range(options.warmup):
        step()
    if options.serve:
        for line in sys.stdin:
            # The first two find their caches full of another process's things.
            print(statistics.mean(time_steps(step, options.tool, int(line), 2)), flush=True)
    else:
        print(int(statistics.median(time_steps(step, options.tool, options.steps))), options.steps)


if __name__ == "__main__":
    main()
