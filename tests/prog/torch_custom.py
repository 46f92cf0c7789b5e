"""Custom autograd functions, one that raises, and operators of torch.library: torch_custom.py [DEVICE]."""

import sys
import time

import torch

device = sys.argv[1] if len(sys.argv) > 1 else "cpu"


class Square(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x * x

    @staticmethod
    def backward(ctx, grad):
        (x,) = ctx.saved_tensors
        return 2 * x * grad


class Broken(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return x.clone()

    @staticmethod
    def backward(ctx, grad):
        grad.neg()
        raise ValueError("no gradient")


class Outer(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        with torch.enable_grad():
            y = x.detach().requires_grad_()
            z = Square.apply(y).sum()
        ctx.save_for_backward(y, z)
        return z.detach()

    @staticmethod
    def backward(ctx, grad):
        y, z = ctx.saved_tensors
        (inner,) = torch.autograd.grad(z, y)
        return inner * grad


library = torch.library.Library("taretest", "DEF")
library.define("twice(Tensor x) -> Tensor")
library.define("halve.scaled(Tensor x, float by) -> Tensor")
library.impl("twice", lambda x: x + x, "CompositeExplicitAutograd")
library.impl("halve.scaled", lambda x, by: x * (0.5 * by), "CompositeExplicitAutograd")

x = torch.arange(4.0, device=device, requires_grad=True)
for step in range(3):
    Square.apply(x).sum().backward()
    Outer.apply(x).backward()
    try:
        Broken.apply(x * 3).sum().backward()
    except ValueError as error:
        print(error)
    (first,) = torch.autograd.grad((x**3).sum(), x, create_graph=True)
    first.sum().backward()
    y = torch.ops.taretest.twice(x.detach())
    y = torch.ops.taretest.halve.scaled(y, 2.0)
    torch.ops.aten.add.Tensor(y, y)
    torch.ops.aten.relu(y)
print(x.grad.tolist(), y.tolist())
# Autograd's threads give back what they hold: torch aborts where the interpreter is gone by then.
time.sleep(0.3)
