"""Loads the simulated CUDA libraries, privately, when a program is about to import torch.

Found through PYTHONPATH, which tests/sim/run sets. A Python program that never imports torch pays
for one entry in sys.meta_path and no library. The finder leaves again at the first import of torch,
and this folder leaves sys.path at once, so the program sees what it would see without them. The
user's own sitecustomize, if there is one, runs after this.
"""
import os
import sys


class BeforeTorch:
    """A finder that finds nothing, and takes the moment to load the libraries."""

    @staticmethod
    def find_spec(name, path=None, target=None):
        if name == "torch":
            sys.meta_path.remove(BeforeTorch)
            import ctypes
            for library in os.environ.get("TARE_SIM_LIBRARIES", "").split(os.pathsep):
                if library:
                    ctypes.CDLL(library)
        return None


def run_next_sitecustomize():
    here = os.path.dirname(os.path.abspath(__file__))
    sys.path[:] = [p for p in sys.path if os.path.abspath(p) != here]
    from _frozen_importlib import module_from_spec
    from _frozen_importlib_external import PathFinder
    spec = PathFinder.find_spec("sitecustomize", sys.path)
    if spec and spec.loader:
        module = sys.modules["sitecustomize"] = module_from_spec(spec)
        spec.loader.exec_module(module)


sys.meta_path.insert(0, BeforeTorch)
run_next_sitecustomize()
