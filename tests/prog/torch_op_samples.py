"""
torch's own samples of its operators (torch.testing's op_db), forwards and backwards on the CPU. Prints a line for
each operator: how many samples, and a digest of the results and gradients, or what was raised.

    torch_op_samples.py PART PARTS    every PARTS-th operator, from the PART-th on
"""

import hashlib
import sys
import warnings

import torch
from torch.testing._internal.common_methods_invocations import op_db
from torch.utils._pytree import tree_leaves

UNINITIALISED = ("empty", "new_empty", "resize")
SAMPLES = 12  # an operator; some have hundreds


def digest(result, leaves):
    for leaf in leaves:
        if isinstance(leaf, torch.Tensor):
            text = f"{leaf.dtype} {tuple(leaf.shape)} {leaf.requires_grad} "
            plain = leaf.detach().resolve_conj().resolve_neg()
            values = plain.cpu().tolist() if plain.layout == torch.strided else plain.shape
            result.update((text + repr(values)).encode())
        else:
            result.update(repr(leaf).encode())


def run(op):
    dtype = torch.float32 if torch.float32 in op.dtypes else sorted(op.dtypes, key=str)[0]
    backwards = op.supports_autograd and dtype == torch.float32
    result, count = hashlib.sha256(), 0
    torch.manual_seed(0)
    for sample in op.sample_inputs("cpu", dtype, requires_grad=backwards):
        if count == SAMPLES:
            break
        count += 1
        out = tree_leaves(op(sample.input, *sample.args, **sample.kwargs))
        digest(result, out if not op.name.startswith(UNINITIALISED) else [len(out)])
        losses = [t.real.sum() if t.is_complex() else t.sum() for t in out if torch.is_tensor(t) and t.requires_grad]
        if losses:
            inputs = [t for t in tree_leaves((sample.input, sample.args, sample.kwargs)) if torch.is_tensor(t)]
            sum(losses).backward()
            digest(result, [t.grad for t in inputs if t.is_leaf])
    return f"{count} samples {result.hexdigest()[:16]}"


warnings.simplefilter("ignore")
torch.set_num_threads(1)
part, parts = map(int, sys.argv[1:])
for op in op_db[part::parts]:
    try:
        line = "passed " + run(op)
    except Exception as error:  # the same one bare and traced
        line = f"raised {type(error).__name__}"
    print(f"{op.formatted_name}\t{line}", flush=True)
