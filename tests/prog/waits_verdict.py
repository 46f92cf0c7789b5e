"""One loop that reads a number each pass: what it waits for takes as long as the device makes it."""

import time

import torch

x = torch.ones(64, device="cuda")
total = 0.0


def step():
    for _ in range(20):
        x.add_(1.0)
    until = time.perf_counter() + 0.001
    while time.perf_counter() < until:
        pass
    return x[0].item()


for _ in range(40):
    total += step()
