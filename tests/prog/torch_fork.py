"""Operators before a fork, and in the child; then in the parent again."""

import os

import torch

x = torch.ones(3)
for _ in range(5):
    x.sinh()
if os.fork() == 0:
    for _ in range(7):
        x.sinh()
        x.cosh()
    os._exit(0)
os.wait()
for _ in range(3):
    x.cosh()
