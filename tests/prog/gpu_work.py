"""Work for devices: streams, two devices, autograd's threads, a graph, copies. Prints what it did of each."""

import time

import torch


def on(device):
    x = torch.ones(64, 64, device=device)
    w = torch.ones(64, 64, device=device, requires_grad=True)
    for _ in range(10):
        y = (x @ w + x).relu().sum()
        y.backward()
        y.item()


def streams():
    x = torch.ones(64, device="cuda")
    one, two = torch.cuda.Stream(), torch.cuda.Stream()
    for _ in range(5):
        with torch.cuda.stream(one):
            x + x
        with torch.cuda.stream(two):
            x * x
    torch.cuda.synchronize()


def graph():
    x = torch.ones(64, device="cuda")
    torch.cuda.synchronize()
    g = torch.cuda.CUDAGraph()
    with torch.cuda.graph(g):
        y = x + x
        y = y * y
    for _ in range(7):
        g.replay()
    torch.cuda.synchronize()


def adds():
    x = torch.ones(64, device="cuda")
    for _ in range(20):
        x = x + 1  # one kernel
        x.sigmoid()  # another
    torch.cuda.synchronize()


for index in range(torch.cuda.device_count()):
    on(f"cuda:{index}")
streams()
graph()
adds()
print("done")
time.sleep(0.2)  # torch may abort where it ends right after a backward()
