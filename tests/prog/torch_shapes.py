"""Operators that call many others, and indexing: torch_shapes.py [DEVICE]."""

import sys

import torch

device = sys.argv[1] if len(sys.argv) > 1 else "cpu"
torch.manual_seed(1)
x = torch.randn(6, 8, device=device)
counts = torch.tensor([3, 1, 3, 2, 1, 0], device=device)
for step in range(3):
    mask = x > 0
    x[mask] = x[mask] * 0.5
    rows, columns = torch.nonzero(mask, as_tuple=True)
    unique, inverse = torch.unique(counts, return_inverse=True)
    product = torch.einsum("ij,kj->ik", x, x)
    product = torch.einsum("ij,jk,kl->il", product, x, x.T)
    first = x[0], x[:, 1:3], x[None], x[..., -1], x[counts]
    where = torch.where(x > 0.1)
    ordered = torch.sort(x, dim=1)[0].cumsum(0).clamp_min(0.0)
    padded = torch.nn.functional.pad(x, (1, 2)).roll(1, 0).flip(1)
    stacked = torch.stack([x, x * 2]).permute(1, 0, 2).reshape(-1, 8).chunk(2)
    spread = torch.linalg.norm(x, dim=1).std(), torch.logsumexp(x, 1).var()
    text = x.sum().isfinite().item(), len(rows) == len(columns), unique.tolist()
    print(step, text, product.shape, len(where), len(stacked), padded.shape)
