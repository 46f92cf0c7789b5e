"""Activation checkpointing, both ways: torch_checkpoint.py [DEVICE]."""

import sys
import time

import torch
import torch.nn as nn
from torch.utils.checkpoint import checkpoint

device = sys.argv[1] if len(sys.argv) > 1 else "cpu"
torch.manual_seed(1)
layers = nn.ModuleList(nn.Sequential(nn.Linear(8, 8), nn.GELU()) for _ in range(3)).to(device)
for reentrant in (False, True):
    for step in range(2):
        x = torch.randn(4, 8, device=device, requires_grad=True)
        for layer in layers:
            x = checkpoint(layer, x, use_reentrant=reentrant)
        x.sum().backward()
        print(reentrant, step, layers[0][0].weight.grad is not None)
# Autograd's threads give back what they hold: torch aborts where the interpreter is gone by then.
time.sleep(0.3)
