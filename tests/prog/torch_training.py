"""Some training steps of a small network: torch_training.py [DEVICE [STEPS]]."""

import sys
import time

import torch
import torch.nn as nn
import torch.nn.functional as F

device = sys.argv[1] if len(sys.argv) > 1 else "cpu"
steps = int(sys.argv[2]) if len(sys.argv) > 2 else 3


class Block(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.norm = nn.LayerNorm(width)
        self.attention = nn.MultiheadAttention(width, 4, batch_first=True)
        self.linear = nn.Linear(width, width)

    def forward(self, x):
        y = self.norm(x)
        x = x + self.attention(y, y, y, need_weights=False)[0]
        return x + F.gelu(self.linear(x))


torch.manual_seed(1)
model = nn.Sequential(*[Block(16) for _ in range(2)], nn.Linear(16, 10)).to(device)
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
for step in range(steps):
    x = torch.randn(8, 4, 16, device=device)
    target = torch.randint(0, 10, (8, 4), device=device)
    loss = F.cross_entropy(model(x).flatten(0, 1), target.flatten())
    optimizer.zero_grad(set_to_none=True)
    loss.backward()
    nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    optimizer.step()
    print(step, loss.item() > 0)
# Autograd's threads give back what they hold: torch aborts where the interpreter is gone by then.
time.sleep(0.3)
