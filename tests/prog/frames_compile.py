"""torch.compile, which puts an evaluator of its own before ours and takes it away again."""

import torch


def helper(x):
    return x * 2


def compiled(x):
    y = helper(x)
    print("break")
    return y + 1


def plain(n):
    return n and 1 + plain(n - 1)


function = torch.compile(compiled, backend="eager")
for i in range(3):
    print(function(torch.ones(3)).sum().item())
    print(plain(100))
print(plain(900))
torch._dynamo.reset()
print(function(torch.ones(3)).sum().item())
print(plain(100))
