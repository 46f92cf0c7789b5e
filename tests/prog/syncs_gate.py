"""Waits of several kinds: a read and (new) a mask in each step, a read in each tenth, a synchronise."""

import sys

import torch

D = "cuda"


def select(x):
    return x[x > 0]


def step(w, x):
    loss = (w @ x).mean()
    total = loss.item()
    if sys.argv[1] == "new":
        select(x)
    return loss, total


def main():
    w = torch.randn(64, 64, device=D)
    x = torch.randn(64, 64, device=D)
    for i in range(50):
        loss, total = step(w, x)
        if i % 10 == 9:
            print("loss", float(loss))
        torch.cuda.synchronize()


main()
