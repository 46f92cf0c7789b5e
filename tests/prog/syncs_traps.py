"""
What only looks like a synchronisation (CLEAN), what is one on purpose (EXPLICIT, DESIGN), and some that
are (KIND n: so often a pass). One trap a function; each runs in a loop of ten passes.
"""

import sys
import threading
import types

import torch
import torch.utils.benchmark

D = "cuda"
PASSES = 10
x = torch.randn(64, 64, device=D)
y = torch.randn(64, 64)
mask = x > 0
pinned = torch.randn(64, 64).pin_memory()
event = torch.cuda.Event(enable_timing=True)
start = torch.cuda.Event(enable_timing=True)
side = torch.cuda.Stream()
parameters = [torch.nn.Parameter(torch.randn(8, device=D)) for _ in range(4)]
for p in parameters:
    p.grad = torch.ones_like(p)
adam = torch.optim.AdamW(parameters, lr=1e-3, foreach=False)
out = []


def cpu_reads():
    out.append(y.sum().item())  # CLEAN
    out.append(bool(y.sum() > 0))  # CLEAN
    out.append(y[0].tolist())  # CLEAN
    y.cpu()  # CLEAN
    x.cuda()  # CLEAN
    x.to(D)  # CLEAN


def optimizer_step():
    adam.step()  # CLEAN


def pinned_copies():
    pinned.to(D, non_blocking=True)  # CLEAN
    x.to("cpu", non_blocking=True)  # CLEAN


def queries():
    event.record()  # CLEAN
    for _ in range(20):
        event.query()  # CLEAN
        side.query()  # CLEAN
    torch.cuda.memory_allocated()  # CLEAN


def polls():
    event.record()  # CLEAN
    for _ in range(2000):
        event.query()  # POLLING
    while not side.query():  # CLEAN
        pass


def events():
    start.record()  # CLEAN
    event.record()  # CLEAN
    event.synchronize()  # EXPLICIT event-sync
    start.elapsed_time(event)  # CLEAN


def streams():
    side.wait_stream(torch.cuda.current_stream())  # CLEAN
    side.wait_event(event)  # CLEAN
    x.record_stream(side)  # CLEAN
    side.synchronize()  # EXPLICIT stream-sync


def metadata():
    len(x)  # CLEAN
    x.shape, x.size(), x.dtype, x.is_cuda, x.numel()  # CLEAN
    for row in x[:3]:  # CLEAN
        row.stride()


def masked():
    z = x.clone()  # CLEAN
    z[mask] = 0.0  # CLEAN
    z.masked_fill(mask, 1.0)  # CLEAN
    torch.where(mask, z, x)  # CLEAN
    torch.nn.utils.clip_grad_norm_(parameters, 1.0)  # CLEAN


def benchmark():
    torch.utils.benchmark.Timer("x + x", globals={"x": x}).timeit(2)  # DESIGN


def profiled():
    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU]):
        x + x  # CLEAN


class Reads(torch.autograd.Function):
    @staticmethod
    def forward(context, a):
        return a * 2

    @staticmethod
    def backward(context, gradient):
        gradient.sum().item()  # scalar-read 1
        return gradient


def backward_reads():
    a = torch.ones(4, device=D, requires_grad=True)
    Reads.apply(a).sum().backward()


def other_thread():
    def read():
        x.sum().item()  # scalar-read 1

    thread = threading.Thread(target=read)
    thread.start()
    thread.join()


def several_reads():
    x.sum().item(), x.mean().item()  # scalar-read 2
    x.cpu()  # device-to-host 1
    x.tolist()  # device-to-host 1
    torch.cuda.synchronize()  # EXPLICIT device-sync


def captured():
    graph = torch.cuda.CUDAGraph()
    static = torch.zeros(64, 64, device=D)
    with torch.cuda.graph(graph):
        static.add_(x)  # CLEAN
    for _ in range(3):
        graph.replay()  # CLEAN


def scaled():
    scaler.unscale_(sgd)  # CLEAN
    scaler.step(sgd)  # DESIGN
    scaler.update()


def evaluated():
    global turn
    turn += 1
    if turn % 4 == 0:
        x.mean().item()  # PERIODIC
    x.add_(1)  # CLEAN


def counters():
    torch.cuda.memory_allocated(), torch.cuda.max_memory_allocated()  # CLEAN
    torch.cuda.mem_get_info()  # CLEAN


def idle():
    torch.cuda.synchronize()  # EXPLICIT device-sync
    small.item()  # scalar-read 1


turn = 0
small = x.sum()
scaler = torch.amp.GradScaler(D)
scaler.scale(torch.ones((), device=D))
sgd = torch.optim.SGD(parameters, lr=0.1)


def drive(trap):
    for _ in range(PASSES):
        trap()


def run(name):
    """Each in a loop of its own: one code object would have one loop."""
    code = drive.__code__.replace(co_name=f"drive_{name}")
    types.FunctionType(code, globals())(globals()[name])


# No loop around the loops.
list(map(run, sys.argv[1:]))
