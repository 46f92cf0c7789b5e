"""Prints analyzer/op_names.def from one or more native_functions.yaml (torchgen/packaged/ATen/native).

    python analyzer/gen_op_names.py FILE... > analyzer/op_names.def

Only the names of operators are taken, without their overloads.
"""

import re
import sys

HEAD = """/*
 * op_names.def: names of PyTorch's operators, without overloads: BASE("add_") BASE("clamp_min") ...
 *
 * Made by gen_op_names.py from torch 1.13 to 2.14; sorted by bytes. at::_ops::clamp_min_Tensor is
 * clamp_min.Tensor, not clamp.min_Tensor: only a list can tell.
 */
/* clang-format off */
"""


def names(text):
    for name in re.findall(r"^- func: ([^\s(]+)", text, re.MULTILINE):
        yield name.split(".")[0]
    for line in re.findall(r"^\s+autogen: (.+)$", text, re.MULTILINE):
        for name in line.split(","):
            yield name.strip().split(".")[0]


def main():
    found = set()
    for path in sys.argv[1:]:
        with open(path) as file:
            found.update(names(file.read()))
    print(HEAD, end="")
    line = ""
    for name in sorted(found):
        item = f'BASE("{name}")'
        if line and len(line) + 1 + len(item) > 100:
            print(line)
            line = item
        else:
            line = f"{line} {item}".strip()
    print(line)


main()
