"""A thread of gloo waits for the device: no Python runs on it."""

import time

import torch
import torch.distributed as dist

dist.init_process_group("gloo", store=dist.HashStore(), rank=0, world_size=1)
values = torch.ones(1000, device="cuda")
for step in range(10):
    values = values * 2
    dist.all_reduce(values)
dist.destroy_process_group()
print("done")
time.sleep(0.2)
