"""Runs other programs of this folder in one process, to import torch once: torch_all.py DEVICE NAME..."""

import runpy
import sys
from pathlib import Path

device, *names = sys.argv[1:]
for name in names:
    path = str(Path(__file__).with_name(f"torch_{name}.py"))
    sys.argv = [path, device]
    print(name)
    runpy.run_path(path, run_name="__main__")
