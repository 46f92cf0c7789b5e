"""Hooks of tensors, modules and gradients: torch_hooks.py [DEVICE]."""

import sys
import time

import torch
import torch.nn as nn

device = sys.argv[1] if len(sys.argv) > 1 else "cpu"
torch.manual_seed(1)
seen = []
model = nn.Sequential(nn.Linear(4, 4), nn.ReLU(), nn.Linear(4, 2)).to(device)
model[0].register_forward_pre_hook(lambda module, inputs: (inputs[0] * 1.0,))
model[1].register_forward_hook(lambda module, inputs, output: output + 0.0)
model[2].register_full_backward_hook(lambda module, inputs, outputs: (inputs[0] * 2.0,))
if hasattr(x := model[2].weight, "register_post_accumulate_grad_hook"):
    x.register_post_accumulate_grad_hook(lambda p: seen.append(p.grad.mul(2).shape))
model[0].weight.register_hook(lambda grad: grad.clamp(-1, 1) * 0.5)
for step in range(3):
    x = torch.randn(3, 4, device=device, requires_grad=True)
    h = model(x)
    h.register_hook(lambda grad: grad + torch.ones_like(grad))
    h.pow(2).sum().backward()
    x.grad = None
print(len(seen), seen[:1])
# Autograd's threads give back what they hold: torch aborts where the interpreter is gone by then.
time.sleep(0.3)
