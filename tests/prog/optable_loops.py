"""Operators of small and of large data on the CPU, in loops that know their passes; objects that are freed."""

import torch

torch.set_num_threads(1)
SMALL = torch.ones(1)
LARGE = torch.ones(1_000_000)


def main():
    for _ in range(30):  # line: outer
        SMALL.add(1)  # line: small
        for _ in range(4):  # line: inner
            LARGE.add(1)  # line: large
    for _ in range(50):  # line: after
        SMALL.mul(2)  # line: after_mul


def frees():
    tensors = [torch.empty(0) for _ in range(50)]
    while tensors:
        tensors.pop()


main()
frees()
print("done")
