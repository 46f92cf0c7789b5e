"""Tensor subclasses and modes: torch_subclass.py [DEVICE]."""

import sys

import torch
from torch.utils._python_dispatch import TorchDispatchMode

device = sys.argv[1] if len(sys.argv) > 1 else "cpu"
called = []


class Named(torch.Tensor):
    @classmethod
    def __torch_function__(cls, function, types, args=(), kwargs=None):
        called.append(function.__name__)
        return super().__torch_function__(function, types, args, kwargs or {})


class Dispatched(TorchDispatchMode):
    def __torch_dispatch__(self, function, types, args=(), kwargs=None):
        called.append(str(function))
        return function(*args, **(kwargs or {}))


x = torch.arange(6.0, device=device).reshape(2, 3).as_subclass(Named)
for step in range(3):
    y = (x + 1).relu() @ x.T
    z = torch.cat([y, y]).sum(dim=0)
    with Dispatched():
        w = torch.ones(3, device=device) * 2
        v = torch.nn.functional.linear(w, torch.ones(2, 3, device=device))
print(len(called), z.tolist(), v.tolist())
