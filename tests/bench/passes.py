"""Programs whose passes are timed bare and traced, to see whether what tare takes out of a trace is what it put in.

    passes.py calls | threads | tiny | loop | train | loader

For each line on stdin, a number, runs so many passes and prints how many ns each took, as JSON.
"""
import json
import os
import pathlib
import sys
import threading
import time


class Point:
    def __init__(self, x, y):
        self.x, self.y = x, y

    def __add__(self, other):
        return Point(self.x + other.x, self.y + other.y)

    @property
    def norm(self):
        return self.x * self.x + self.y * self.y

    def scaled(self, factor):
        return Point(self.x * factor, self.y * factor)


def fib(n):
    return n if n < 2 else fib(n - 1) + fib(n - 2)


def numbers(count):
    for i in range(count):
        yield i * 7 % 31


def evens(source):
    for value in source:
        if value % 2 == 0:
            yield value


def squares(source):
    return (value * value for value in source)


def calls():
    """Recursion, a pipeline of generators, and a class with attributes."""
    total = fib(12) + sum(squares(evens(numbers(300))))
    point = Point(0, 0)
    for i in range(60):
        point = point + Point(i, 1).scaled(0.5)
        total += point.norm
    return total


def make_calls():
    return calls


def make_threads():
    """Eight threads, each with a share of the work."""
    start, end = threading.Barrier(9), threading.Barrier(9)

    def run():
        while True:
            start.wait()
            for _ in range(5):
                calls()
            end.wait()

    def work():
        start.wait()
        end.wait()
    for _ in range(8):
        threading.Thread(target=run, daemon=True).start()
    return work


def make_tiny():
    """Operators on tensors of few elements, on the CPU."""
    import torch
    torch.set_num_threads(1)
    a, b = torch.ones(4), torch.full((4,), 2.0)

    def work():
        x = a
        for i in range(20):
            x = torch.relu(x * b - a).view(2, 2).t().reshape(4)
            x = x / x.sum().clamp(min=1) if i % 5 else x[1:].cumsum(0).add(1).repeat(2)[:4]
        return x
    return work


def make_loop():
    """The overhead-bound loop of loop.py."""
    import loop
    return loop.make_step("cuda")


def load_train():
    sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "examples"))
    import train
    return train


def make_train():
    """A step of examples/train.py, as its main() makes it."""
    import torch
    from torch import nn
    train = load_train()
    torch.manual_seed(0)
    torch.set_num_threads(1)
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    loader = train.DataLoader(train.Counting(1600, 24, 64, 0), 16)
    model = train.Transformer(64, 24, 64, heads=4, layers=2).to(device)
    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-3)

    def batches():
        while True:
            yield from loader
    batch = batches()

    def work():
        tokens, targets = next(batch)
        logits = model(tokens.to(device, non_blocking=True))
        loss = train.F.cross_entropy(logits.flatten(0, 1), targets.to(device, non_blocking=True).flatten())
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), max_norm=1.0)
        optimizer.step()
        return loss.item()
    return work


def make_loader():
    """Batches from two worker processes, and little work with each."""
    import torch
    train = load_train()
    torch.set_num_threads(1)
    loader = train.DataLoader(train.Counting(4800, 24, 64, 0), 16, num_workers=2, persistent_workers=True)
    layer = torch.nn.Linear(24, 24)

    def batches():
        while True:
            yield from loader
    batch = batches()

    def work():
        tokens, targets = next(batch)
        x = tokens.float()
        for _ in range(30):
            x = torch.relu(layer(x))
        return float((x - targets).sum().detach())
    return work


def passes(work, count):
    clock, times = time.perf_counter_ns, [0] * count
    start = clock()
    for number in range(count):  # line: passes
        work()
        end = clock()
        times[number] = end - start
        start = end
    return times


def main():
    work = globals()[f"make_{sys.argv[1]}"]()
    # Of another loop: what is measured later must not hold how a process starts beside others.
    for _ in range(30):
        work()
    for line in sys.stdin:
        work()
        print(json.dumps(passes(work, int(line))), flush=True)
    # Threads that wait for work, and a CUDA backward just before the end, are not worth an orderly exit.
    time.sleep(0.1)
    os._exit(0)


if __name__ == "__main__":
    main()
