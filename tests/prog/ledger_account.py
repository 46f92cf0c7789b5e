"""Calls of every line of the ledger, whose cost the simulated device knows."""
import time

import torch

x = torch.ones(64, 64, device="cuda")
weight = torch.ones(64, 64, device="cuda")
host = torch.ones(64, 64)
torch.cuda.synchronize()
for _ in range(60):
    for _ in range(5):
        y = x + 1
        y = y @ weight
        z = y.clone()
    # More than fits into what is there: has a block of its own.
    large = torch.empty(16 << 20, device="cuda")
    host.to("cuda")
    z.cpu()
    z.sum().item()
    torch.cuda.synchronize()
    del y, z, large
    torch.cuda.empty_cache()
print("done")
time.sleep(0.1)
