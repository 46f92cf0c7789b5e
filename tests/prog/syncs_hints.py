"""
Waits of each cause, and a word of the hint that fits: one cause a function, each in a loop of ten.

Not here: repeat_interleave and one_hot, which check values that the simulated device does not compute.
"""

import sys
import types

import torch

D = "cuda"
x = torch.randn(8, 8, device=D)
mask = x > 0
index = torch.ones((), dtype=torch.int64, device=D)
z = x + 1
y = torch.randn(8, 8)
event = torch.cuda.Event()
side = torch.cuda.Stream()


def printed():
    f"{x[0, 0]}"  # HINT printing


def branch():
    if mask[0, 0]:  # HINT branch
        pass


def compared():
    torch.equal(x, z)  # HINT comparing


def one_read():
    x.sum().item()  # HINT keep the sum on the device


def two_reads():
    x.sum().item()  # HINT stack
    x.mean().item()  # HINT stack


def scalar_index():
    x[index]  # HINT keep the sum on the device


def selected():
    x[mask]  # HINT mask as an index


def masked():
    torch.masked_select(x, mask)  # HINT multiply by the mask


def nonzero():
    x.nonzero()  # HINT nonzero_static


def copied():
    x.cpu()  # HINT copy once for several steps


def two_copies():
    x.cpu()  # HINT put them together
    x.tolist()  # HINT put them together


def listed():
    x[[1, 2]]  # HINT of a list or number


def created():
    torch.tensor([1.0, 2.0], device=D)  # HINT of a list or number


def blocking():
    y.to(D)  # HINT pin the memory and copy


def pageable():
    y.to(D, non_blocking=True)  # HINT has no effect here


def emptied():
    torch.empty(10_000_000, device=D)
    torch.cuda.empty_cache()  # HINT leave the cache alone


def synchronised():
    torch.cuda.synchronize()  # HINT use events, or do it
    side.synchronize()  # HINT wait_stream
    event.record()
    event.synchronize()  # HINT wait_event


def drive(cause):
    for _ in range(10):
        cause()


def run(name):
    """Each in a loop of its own: one code object would have one loop."""
    code = drive.__code__.replace(co_name=f"drive_{name}")
    types.FunctionType(code, globals())(globals()[name])


# No loop around the loops.
list(map(run, sys.argv[1:]))
