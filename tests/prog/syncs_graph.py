"""Loops that could be captured as a CUDA graph, that could not, and that replay one."""

import torch

D = "cuda"
x = torch.randn(64, 64, device=D)
pageable = torch.randn(8)


def plain():
    for _ in range(20):
        x.add_(1)
        x.mul_(1)


def obstacles():
    for step in range(20):
        for _ in range(step % 5):
            x.add_(1)
        x.mul_(1)
        pageable.to(D, non_blocking=True)
        if x.sum().item() > 3:
            break
        torch.cuda.empty_cache()
        torch.empty(10_000_000, device=D)


def periodic():
    for step in range(20):
        x.add_(1)
        x.sub_(1)
        if step == 15:
            x.mul_(1)


def replays():
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        x * 2 + 1
    for _ in range(20):
        graph.replay()
        x.mul_(1)


def host():
    for _ in range(20):
        torch.ones(3).add_(1)


plain()
obstacles()
periodic()
replays()
host()
