"""User ranges, nested and on two threads, with an exception out of one."""

import threading

import torch
from torch.profiler import record_function

x = torch.ones(3)


def work(name):
    for step in range(4):
        with record_function(name):
            with record_function(f"{name}/{step}"):
                x.add(1)
            x.mul(2)
    try:
        with record_function(f"{name}/raises"):
            raise KeyError(name)
    except KeyError:
        pass


thread = threading.Thread(target=work, args=("other",))
thread.start()
thread.join()
work("main")
print("done")
