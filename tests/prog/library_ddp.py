"""DistributedDataParallel by hand: two ranks on gloo, gradients and metrics reduced, rank 0 prints."""

import os
import sys
import tempfile
import time

import torch
import torch.distributed as dist
import torch.multiprocessing as mp
from torch import nn
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, DistributedSampler, TensorDataset

RANKS = 2


def batches(rank):
    generator = torch.Generator().manual_seed(0)
    data = TensorDataset(torch.randn(128, 8, generator=generator), torch.randn(128, 4, generator=generator))
    sampler = DistributedSampler(data, RANKS, rank, seed=1)
    return sampler, DataLoader(data, batch_size=4, sampler=sampler, pin_memory=True)


def mean_over_ranks(value):
    value = value.detach().clone()
    dist.all_reduce(value)
    return value.item() / RANKS


def train(rank, epochs=8):
    torch.manual_seed(0)
    net = nn.Sequential(nn.Linear(8, 32), nn.Tanh(), nn.Linear(32, 32), nn.Tanh(), nn.Linear(32, 4))
    model = DistributedDataParallel(net.to("cuda"), device_ids=[0])
    optimizer = torch.optim.Adam(model.parameters(), 1e-3)
    sampler, loader = batches(rank)
    for epoch in range(epochs):
        sampler.set_epoch(epoch)
        running = 0.0
        for step, (x, y) in enumerate(loader):
            x, y = x.to("cuda", non_blocking=True), y.to("cuda", non_blocking=True)
            loss = nn.functional.mse_loss(model(x), y)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            running += loss.item()
            if step % 8 == 0:
                mean = mean_over_ranks(loss)
                if rank == 0:
                    print(f"epoch {epoch} step {step}: {mean:.3f}", flush=True)
        if rank == 0 and running < 0:
            print("negative")


def worker(rank, store):
    torch.set_num_threads(1)
    dist.init_process_group("gloo", init_method=f"file://{store}", rank=rank, world_size=RANKS)
    train(rank)
    dist.barrier()
    dist.destroy_process_group()
    time.sleep(0.05)


def main():
    with tempfile.TemporaryDirectory() as folder:
        mp.spawn(worker, args=(os.path.join(folder, "store"),), nprocs=RANKS)
    print("done")
    sys.stdout.flush()


if __name__ == "__main__":
    main()
