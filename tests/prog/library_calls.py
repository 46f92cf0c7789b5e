"""Calls of CUDA's libraries from PyTorch: some rounds of each kind."""
import os
import time

import torch
import torch.distributed as dist

torch.manual_seed(0)
a = torch.ones(64, 64, device="cuda")
linear = torch.nn.Linear(64, 64).cuda()
convolution = torch.nn.Conv2d(3, 8, 3).cuda()
image = torch.ones(1, 3, 32, 32, device="cuda")
sparse = torch.eye(64).to_sparse_csr().cuda()
os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT="0", RANK="0", WORLD_SIZE="1")
store = dist.HashStore()
dist.init_process_group("nccl", store=store, rank=0, world_size=1, device_id=torch.device("cuda:0"))
for _ in range(20):
    _ = a @ a
    _ = linear(a)
    _ = convolution(image)
    _ = torch.fft.rfft(a)
    _ = torch.linalg.cholesky_ex(a)
    _ = sparse @ a
    dist.all_reduce(a)
torch.cuda.synchronize()
dist.destroy_process_group()
print(tuple(linear(a).shape))
time.sleep(0.2)
