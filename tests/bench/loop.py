"""One overhead-bound training loop, the yardstick of the benchmarks.

Four blocks of Linear(64,64), LayerNorm, GELU, then Linear(64,10), batch 8, AdamW, loss.item() at
every step: about 400 Python frames, 400 operators and 46 CUDA runtime calls a step. Prints the median
time of a step in ns, and the number of steps.

    loop.py [--steps N] [--warmup N] [--device cuda|cpu] [--tool none|profiler|profiler-stack|cprofile|viztracer]
"""
import argparse
import contextlib
import os
import statistics
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


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--steps", type=int, default=300)
    parser.add_argument("--warmup", type=int, default=50)
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    parser.add_argument("--tool", default="none")
    options = parser.parse_args()

    torch.manual_seed(0)
    torch.set_num_threads(1)
    layers = []
    for _ in range(4):
        layers += [nn.Linear(64, 64), nn.LayerNorm(64), nn.GELU()]
    model = nn.Sequential(*layers, nn.Linear(64, 10)).to(options.device)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    loss_function = nn.CrossEntropyLoss()
    batch = torch.randn(8, 64, device=options.device)
    target = torch.randint(0, 10, (8,)).to(options.device)

    def step():
        optimizer.zero_grad()
        loss = loss_function(model(batch), target)
        loss.backward()
        optimizer.step()
        return loss.item()

    for _ in range(options.warmup):
        step()
    times = []
    with tool_context(options.tool) as tool:
        for _ in range(options.steps):
            start = time.perf_counter_ns()
            step()
            times.append(time.perf_counter_ns() - start)
        if options.tool == "viztracer":
            tool.stop()
            tool.clear()
    print(int(statistics.median(times)), options.steps)


if __name__ == "__main__":
    main()
