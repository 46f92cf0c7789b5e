"""What programs do with torch, on the processor or on the (simulated) device: DEVICE CASE."""

import os
import sys
import warnings

import torch
from torch import nn

import process_state

device = sys.argv[1]
CASES = {}
torch.manual_seed(0)


def case(function):
    CASES[function.__name__] = function
    return function


def show(tensor):
    """Kernels of the simulated device compute nothing: values of the processor alone are told."""
    values = tensor.detach().flatten()[:4].tolist() if device == "cpu" else ""
    print(tuple(tensor.shape), tensor.dtype, values)


def model():
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(8, 8), nn.LayerNorm(8), nn.GELU(), nn.Linear(8, 2)).to(device)


def step(net, optimizer, x):
    optimizer.zero_grad()
    loss = net(x).square().mean()
    loss.backward()
    optimizer.step()
    return loss


@case
def training():
    net = model()
    optimizer = torch.optim.AdamW(net.parameters())
    for _ in range(5):
        loss = step(net, optimizer, torch.ones(4, 8, device=device))
    show(loss)


@case
def profiler():
    from torch.profiler import ProfilerActivity, profile, record_function

    net = model()
    optimizer = torch.optim.SGD(net.parameters(), 0.1)
    with profile(activities=[ProfilerActivity.CPU], with_stack=True, record_shapes=True) as prof:
        for _ in range(3):
            with record_function("my step"):
                step(net, optimizer, torch.ones(4, 8, device=device))
    for event in sorted(prof.key_averages(), key=lambda event: event.key):
        # Profiling by stacks adds names with addresses.
        if event.key.startswith(("aten::", "my ", "autograd::")):
            print(event.key, event.count)


@case
def autograd():
    class Double(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            return x * 2

        @staticmethod
        def backward(ctx, gradient):
            (x,) = ctx.saved_tensors
            return gradient * 2

    class Fails(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x.clone()

        @staticmethod
        def backward(ctx, gradient):
            raise ValueError("in backward")

    log = []
    x = torch.ones(3, device=device, requires_grad=True)
    x.register_hook(lambda gradient: log.append("tensor hook"))
    net = nn.Linear(3, 3).to(device)
    net.register_forward_hook(lambda *_: log.append("forward hook"))
    net.register_full_backward_hook(lambda *_: log.append("backward hook"))
    net(Double.apply(x)).sum().backward()
    show(x.grad)
    try:
        Fails.apply(x).sum().backward()
    except ValueError as error:
        log.append(str(error))
    y = torch.ones(3, device=device, requires_grad=True)
    (first,) = torch.autograd.grad((y**3).sum(), y, create_graph=True)
    first.sum().backward()
    show(y.grad)
    try:
        torch.ones(2, 3, device=device) @ torch.ones(2, 3, device=device)
    except RuntimeError as error:
        log.append(str(error).splitlines()[0])
    print(log)


@case
def jit():
    warnings.simplefilter("ignore")

    @torch.jit.script
    def scripted(x, n: int):
        for i in range(n):
            if i % 2 == 0:
                x = x + 1
            else:
                x = x * 2
        return x

    traced = torch.jit.trace(model(), torch.ones(4, 8, device=device))
    for _ in range(4):
        show(scripted(torch.ones(3, device=device), 5))
        show(traced(torch.ones(4, 8, device=device)))


@case
def compiled():
    net = model()
    for backend in ("eager", "aot_eager"):
        torch._dynamo.reset()
        run = torch.compile(net, backend=backend)
        for n in (4, 4, 5):
            out = run(torch.ones(n, 8, device=device))
            out.sum().backward()
            show(out)

    @torch.compile(backend="eager")
    def breaks(x):
        x = x + 1
        torch._dynamo.graph_break()
        return [x * i for i in range(3)]

    show(breaks(torch.ones(3, device=device))[2])


@case
def graphs():
    x = torch.zeros(4, 8, device=device)
    net = model()
    stream = torch.cuda.Stream()
    with torch.cuda.stream(stream), torch.no_grad():
        net(x)
    torch.cuda.current_stream().wait_stream(stream)
    graph = torch.cuda.CUDAGraph()
    with torch.no_grad(), torch.cuda.graph(graph):
        y = net(x)
    for _ in range(10):
        graph.replay()
    torch.cuda.synchronize()
    show(y)
    broken = torch.cuda.CUDAGraph()
    try:
        with torch.no_grad(), torch.cuda.graph(broken):
            net(x).sum().item()
    except RuntimeError as error:
        print(str(error).splitlines()[0])


@case
def synchronisation():
    torch.cuda.set_sync_debug_mode("warn")
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        torch.ones(3, device=device).sum().item()
    print([str(w.message).splitlines()[0] for w in seen])
    torch.cuda.set_sync_debug_mode("error")
    try:
        torch.ones(3, device=device).nonzero()
    except RuntimeError as error:
        print(str(error).splitlines()[0])
    torch.cuda.set_sync_debug_mode("default")
    print(torch.cuda.memory_allocated() > 0, torch.cuda.current_device())
    try:
        torch.empty(1 << 50, device=device)
    except RuntimeError as error:
        print(type(error).__name__)


class Numbers(torch.utils.data.Dataset):
    def __init__(self, crash=False):
        self.crash = crash

    def __len__(self):
        return 8

    def __getitem__(self, i):
        if self.crash and i == 5:
            os._exit(9)
        return torch.full((2,), float(i))


def batches(loader):
    return [int(batch.sum()) for batch in loader]


@case
def workers():
    loader = torch.utils.data.DataLoader(Numbers(), batch_size=2, num_workers=2)
    print(batches(loader), batches(loader))


@case
def persistent_workers():
    options = {"num_workers": 2, "persistent_workers": True, "multiprocessing_context": "fork"}
    for more in ({}, {"multiprocessing_context": "spawn"}):
        loader = torch.utils.data.DataLoader(Numbers(), batch_size=2, **{**options, **more})
        print(batches(loader), batches(loader))


def plain_numbers(items):
    return [float(item.sum()) for item in items]


@case
def dying_worker():
    """
    Of numbers, not tensors: torch's handler of SIGCHLD raises wherever the main process is, and in the midst of
    fetching a tensor's descriptor the other worker complains.
    """
    try:
        print(list(torch.utils.data.DataLoader(Numbers(True), 2, num_workers=2, collate_fn=plain_numbers)))
    except RuntimeError as error:
        print(type(error).__name__, "exited unexpectedly" in str(error))


@case
def threads():
    """Backward from several threads at once, and backward in backward; a thread pool that infers."""
    import threading
    from concurrent.futures import ThreadPoolExecutor

    class Nested(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            return x * 3

        @staticmethod
        def backward(ctx, gradient):
            (x,) = ctx.saved_tensors
            with torch.enable_grad():
                inner = x.detach().requires_grad_()
                (inner**2).sum().backward()
            return gradient * inner.grad

    sums = [None] * 4

    def run(i):
        for _ in range(10):
            x = torch.full((4,), float(i), device=device, requires_grad=True)
            Nested.apply(x).sum().backward()
        sums[i] = x.grad.sum().item()

    started = [threading.Thread(target=run, args=(i,)) for i in range(4)]
    for thread in started:
        thread.start()
    for thread in started:
        thread.join()
    print(sums if device == "cpu" else "")
    net = model()
    with ThreadPoolExecutor(4) as pool, torch.no_grad():
        outs = list(pool.map(lambda n: net(torch.ones(n, 8, device=device)), range(1, 9)))
    print([tuple(out.shape) for out in outs])


@case
def inductor():
    """Compiled C++, by a compiler that is a child."""
    os.environ["TORCHINDUCTOR_CACHE_DIR"] = os.environ["TARE_TEST_CACHE"]
    net = model()
    run = torch.compile(net)
    for n in (4, 4):
        out = run(torch.ones(n, 8, device=device))
        out.sum().backward()
        show(out)
    del os.environ["TORCHINDUCTOR_CACHE_DIR"]
    os.environ.pop("_TORCHINDUCTOR_PYOBJECT_TENSOR_DATA_PTR")  # an address


@case
def distributed():
    """Under torchrun: rank 1 dies after the first all_reduce."""
    import torch.distributed as dist

    dist.init_process_group("gloo")
    x = torch.ones(3) * (dist.get_rank() + 1)
    dist.all_reduce(x)
    with open(f"rank-{dist.get_rank()}", "w") as file:
        print(x.tolist(), file=file)
    if dist.get_rank() == 1:
        os.kill(os.getpid(), 9)
    dist.barrier()


if __name__ == "__main__":
    for name in sys.argv[2:]:
        print("==", name, flush=True)
        CASES[name]()
    process_state.show(threads=None)
