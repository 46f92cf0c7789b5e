"""accelerate: a training loop of one's own with accumulation, clipping, gathered metrics, saved states."""

import time

import torch
from accelerate import Accelerator
from accelerate.utils import set_seed
from torch import nn
from torch.utils.data import DataLoader, TensorDataset
from torch.utils.checkpoint import checkpoint


class Clamp(torch.autograd.Function):
    """A backward in Python, which looks at its gradient."""

    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x.clamp(-3, 3)

    @staticmethod
    def backward(ctx, grad):
        (x,) = ctx.saved_tensors
        if grad.abs().max() > 1e6:
            grad = grad.clamp(-1e6, 1e6)
        return grad * (x.abs() <= 3)


class Net(nn.Module):
    def __init__(self, width=32):
        super().__init__()
        self.first = nn.Linear(8, width)
        self.block = nn.Sequential(nn.Linear(width, width), nn.ReLU())
        self.last = nn.Linear(width, 4)

    def part(self, x):
        # Runs twice: once forward, once more on autograd's thread.
        scale = x.detach().norm().item()
        return self.block(x) / max(scale, 1.0)

    def forward(self, x):
        x = Clamp.apply(self.first(x))
        return self.last(checkpoint(self.part, x, use_reentrant=False))


def data(count):
    generator = torch.Generator().manual_seed(count)
    x = torch.randn(count, 8, generator=generator)
    return TensorDataset(x, torch.randint(0, 4, (count,), generator=generator))


def evaluate(accelerator, model, loader):
    model.eval()
    right = 0
    for x, y in loader:
        with torch.no_grad():
            predicted = model(x).argmax(1)
        predicted, y = accelerator.gather_for_metrics((predicted, y))
        right += sum(int(p == t) for p, t in zip(predicted, y))
    model.train()
    return right


def main():
    set_seed(0)
    accelerator = Accelerator(gradient_accumulation_steps=2)
    model = Net()
    optimizer = torch.optim.AdamW(model.parameters(), 1e-3)
    train, test = DataLoader(data(96), batch_size=4, shuffle=True), DataLoader(data(8), batch_size=4)
    model, optimizer, train, test = accelerator.prepare(model, optimizer, train, test)
    step = 0
    for epoch in range(2):
        total = 0.0
        for x, y in train:
            with accelerator.accumulate(model):
                loss = nn.functional.cross_entropy(model(x), y)
                accelerator.backward(loss)
                if accelerator.sync_gradients:
                    accelerator.clip_grad_norm_(model.parameters(), 1.0)
                optimizer.step()
                optimizer.zero_grad()
            total += loss.detach().float()
            step += 1
            if step % 8 == 0:
                accelerator.print(f"step {step}: {accelerator.gather(loss).mean().item():.3f}")
            if step % 16 == 0:
                accelerator.save_state("state", safe_serialization=False)
        evaluate(accelerator, model, test)
        accelerator.print(f"epoch {epoch}: {total.item() / len(train):.3f}")
    time.sleep(0.05)


if __name__ == "__main__":
    main()
