"""Known operators on known lines, in known numbers: a few steps with a backward pass and a read."""

import torch


def scale(x):
    return x * 2.0  # line: scale


def main():
    device = "cuda" if torch.cuda.is_available() else "cpu"
    a = torch.ones(8, device=device)
    b = torch.ones(8, device=device, requires_grad=True)
    for _ in range(10):
        c = a + b  # line: add
        d = scale(c)
        d.sum().backward()  # line: sum
        c.detach().sum().item()  # line: item
    with torch.profiler.record_function("my range"):
        torch.nn.Linear(8, 8, device=device)(a)  # line: linear
    print("done")


main()
