"""
One program a function, chosen by name. `# MAIN name n`: the main loop of that program, with n passes.
On the CPU: what counts is the order of calls.
"""

import sys
from concurrent.futures import ThreadPoolExecutor

import torch
from torch import nn


class Block(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.norm = nn.LayerNorm(width)
        self.up = nn.Linear(width, width)
        self.down = nn.Linear(width, width)

    def forward(self, x):
        return x + self.down(torch.relu(self.up(self.norm(x))))


class Model(nn.Module):
    def __init__(self, width=32, layers=6):
        super().__init__()
        self.embed = nn.Embedding(100, width)
        self.blocks = nn.ModuleList(Block(width) for _ in range(layers))
        self.head = nn.Linear(width, 100)

    def forward(self, tokens):
        x = self.embed(tokens)
        for block in self.blocks:
            x = block(x)
        return self.head(x)


torch.set_num_threads(1)
model = Model()
batch = torch.zeros(4, 8, dtype=torch.long)


def optimizer(**more):
    return torch.optim.AdamW(model.parameters(), lr=1e-3, **more)


def train_step(steps):
    loss = model(batch).float().logsumexp(-1).mean()
    loss.backward()
    steps.step()
    steps.zero_grad()


def epochs():
    steps = optimizer(foreach=False)
    for epoch in range(4):
        for i in range(12):  # MAIN epochs 48
            train_step(steps)
        torch.zeros(3).sum()


def epochs_cut_short():
    steps = optimizer()
    for epoch in range(8):
        for i, _ in enumerate(zip(range(100), range(100))):  # MAIN epochs_cut_short 64
            if i == 8:
                break
            train_step(steps)


def inference():
    with torch.no_grad():
        for i in range(60):  # MAIN inference 60
            model(batch)


def requests():
    """A prompt has operators of its own; then tokens come one by one."""
    with torch.no_grad():
        for request in range(4):
            prompt = torch.arange(20).remainder(7).clamp(0, 99)
            mask = torch.ones(20, 20).tril().log().softmax(-1).cumsum(0).exp().mean()
            mask = mask.sin().cos().tan().abs().sqrt().neg().floor().ceil().round()
            logits = model(prompt.view(1, -1))[:, -1]
            tokens = [logits.argmax(-1)]
            while len(tokens) <= 25:  # MAIN requests 100
                tokens.append(model(tokens[-1].view(1, 1))[:, -1].argmax(-1))
            torch.cat(tokens).unique().sort()


def accumulation():
    """Parts of a batch are no steps."""
    steps = optimizer()
    for i in range(15):  # MAIN accumulation 15
        for part in batch.repeat(2, 1).split(2):
            model(part).float().logsumexp(-1).mean().backward()
        steps.step()
        steps.zero_grad()


def parameters():
    """Most of the time goes by in a loop over parameters, but it is not what repeats."""
    for i in range(10):  # MAIN parameters 10
        model(batch).sum().backward()
        with torch.no_grad():
            for p in model.parameters():
                for _ in range(20):
                    p.sub_(p.grad, alpha=1e-6)
                p.grad = None


class Trainer:
    """The step is a function of somebody else's, called from a loop in here."""

    def __init__(self, training_step):
        self.training_step = training_step
        self.optimizer = optimizer()

    def fit(self, epochs):
        for epoch in range(epochs):
            self.run_epoch(iter(range(15)))

    def run_epoch(self, batches):
        while True:  # MAIN trainer 60
            try:
                index = next(batches)
            except StopIteration:
                return
            self.run_batch(index)

    def run_batch(self, index):
        self.training_step(index).backward()
        self.optimizer.step()
        self.optimizer.zero_grad()


def trainer():
    Trainer(lambda index: model(batch).float().mean()).fit(4)


def batches(n):
    for i in range(n):
        yield batch + i % 2


def from_generator():
    with torch.no_grad():
        for x in batches(50):  # MAIN from_generator 50
            model(x)


class Done(Exception):
    pass


def thrown():
    """Left by an exception, in the middle of the third round."""
    done = 0
    try:
        for epoch in range(5):
            for i in range(20):  # MAIN thrown 50
                with torch.no_grad():
                    model(batch)
                done += 1
                if done == 50:
                    raise Done
    except Done:
        pass


def pool():
    """Tasks of threads that the main one only waits for."""

    def task(index):
        with torch.no_grad():
            for _ in range(5):
                model(batch)

    with ThreadPoolExecutor(2) as threads:
        for index in range(12):  # MAIN pool 12
            list(threads.map(task, range(2)))
            model(batch[:1])


async def request(count):
    import asyncio

    for i in range(count):  # MAIN coroutines 80
        with torch.no_grad():
            model(batch)
        await asyncio.sleep(0)


def coroutines():
    import asyncio

    async def all_of_them():
        await asyncio.gather(*(request(20) for _ in range(4)))

    asyncio.run(all_of_them())


def recursive(depth=0):
    """A tree of calls, each with a loop: all are one."""
    with torch.no_grad():
        for i in range(3):  # MAIN recursive 120
            model(batch)
            if depth < 3:
                recursive(depth + 1)


def in_a_class():
    with torch.no_grad():

        class Experiment:
            for i in range(30):  # MAIN in_a_class 30
                model(batch)


def equal():
    """Neither is the main one by its weight. See test_equal_loops."""

    def first():
        for i in range(10):  # EQUAL
            model(batch)

    def second():
        for i in range(10):  # EQUAL
            model(batch)

    with torch.no_grad():
        first(), second(), first(), second(), first(), second(), first(), second()


if __name__ == "__main__":
    globals()[sys.argv[1]]()
