"""Operators while another Python thread keeps the GIL busy."""

import threading

import torch

stop = False


def spin():
    turns = 0
    while not stop:
        turns += 1


thread = threading.Thread(target=spin)
thread.start()
x = torch.ones(64)
for _ in range(60):
    x.exp()
stop = True
thread.join()
