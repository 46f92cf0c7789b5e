"""Trains a small transformer to continue number sequences. An ordinary script: nothing here knows of tare.

    python examples/train.py                       on the GPU where there is one, else on the CPU
    LD_PRELOAD=build/libtare.so python examples/train.py

Every sequence counts up in steps of its own: 5 8 11 14 ..., modulo the size of the vocabulary. From two
numbers on, the next one can be told, so the loss falls quickly. What is printed depends on the seed only.
"""

import argparse

import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.data import DataLoader, Dataset


class Counting(Dataset):
    """Sequences start, start + stride, start + 2 * stride, ... (mod vocab), made when asked for."""

    def __init__(self, size, length, vocab, seed):
        generator = torch.Generator().manual_seed(seed)
        self.start = torch.randint(vocab, (size,), generator=generator)
        self.stride = torch.randint(1, 8, (size,), generator=generator)
        self.ramp = torch.arange(length + 1)
        self.vocab = vocab

    def __len__(self):
        return len(self.start)

    def __getitem__(self, index):
        tokens = (self.start[index] + self.stride[index] * self.ramp) % self.vocab
        return tokens[:-1], tokens[1:]


class Block(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.heads = heads
        self.norm1 = nn.LayerNorm(width)
        self.qkv = nn.Linear(width, 3 * width)
        self.out = nn.Linear(width, width)
        self.norm2 = nn.LayerNorm(width)
        self.mlp = nn.Sequential(nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width))

    def forward(self, x):
        batch, length, width = x.shape
        qkv = self.qkv(self.norm1(x)).view(batch, length, 3, self.heads, width // self.heads)
        q, k, v = qkv.permute(2, 0, 3, 1, 4)
        mixed = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.out(mixed.transpose(1, 2).reshape(batch, length, width))
        return x + self.mlp(self.norm2(x))


class Transformer(nn.Module):
    def __init__(self, vocab, length, width, heads, layers):
        super().__init__()
        self.token = nn.Embedding(vocab, width)
        self.position = nn.Embedding(length, width)
        self.blocks = nn.ModuleList(Block(width, heads) for _ in range(layers))
        self.norm = nn.LayerNorm(width)
        self.head = nn.Linear(width, vocab)
        self.register_buffer("positions", torch.arange(length))

    def forward(self, tokens):
        x = self.token(tokens) + self.position(self.positions)
        for block in self.blocks:
            x = block(x)
        return self.head(self.norm(x))


def parse_arguments():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--steps", type=int, default=200)
    parser.add_argument("--batch", type=int, default=16)
    parser.add_argument("--length", type=int, default=24)
    parser.add_argument("--vocab", type=int, default=64)
    parser.add_argument("--width", type=int, default=64)
    parser.add_argument("--layers", type=int, default=2)
    parser.add_argument("--workers", type=int, default=0, help="DataLoader processes")
    parser.add_argument("--log-every", type=int, default=20)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    return parser.parse_args()


def main():
    args = parse_arguments()
    torch.manual_seed(args.seed)
    device = torch.device(args.device)

    dataset = Counting(args.steps * args.batch, args.length, args.vocab, args.seed)
    loader = DataLoader(
        dataset, args.batch, num_workers=args.workers, pin_memory=device.type == "cuda"
    )
    model = Transformer(args.vocab, args.length, args.width, heads=4, layers=args.layers).to(device)
    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-3)
    count = sum(p.numel() for p in model.parameters())
    print(f"{count} parameters, {args.steps} steps of {args.batch} sequences on {device.type}")

    for step, (tokens, targets) in enumerate(loader, start=1):
        tokens = tokens.to(device, non_blocking=True)
        targets = targets.to(device, non_blocking=True)
        logits = model(tokens)
        loss = F.cross_entropy(logits.flatten(0, 1), targets.flatten())
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), max_norm=1.0)
        optimizer.step()
        if step % args.log_every == 0:
            print(f"step {step:4d}  loss {loss.item():.4f}")


if __name__ == "__main__":
    main()
