"""User ranges of odd names. The first is of so many bytes as the argument says."""

import sys

import torch
from torch.profiler import record_function

x = torch.ones(3)


@torch.jit.script
def scripted(a):
    with record_function("scripted"):
        return a.add(1)


@record_function("decorated")
def decorated():
    x.add(1)


with record_function("f" * int(sys.argv[1])):
    x.add(1)
for name in ("", "\u00fcber \u2207", "new\nline", "l" * 5000):
    with record_function(name):
        x.add(1)
with record_function("with arguments", "lr=0.1"):
    x.add(1)
for _ in range(3):
    scripted(x)
    decorated()
print("done")
