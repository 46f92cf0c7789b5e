"""Tight loops: the cost of one kind of event is the difference to bare. A server, see servers.py: ns a turn.

    calls.py python     f(), a Python call
    calls.py c          len(x), a C call
    calls.py op         many nested operators inside one native section
    calls.py WHAT N     N turns, printing nothing: to count the events of a turn in its trace
"""
import sys
import time


def python_calls(turns):
    def f():
        pass
    for _ in range(turns):
        f()


def c_calls(turns):
    x = [1, 2, 3]
    length = len
    for _ in range(turns):
        length(x)


def operators(turns):
    """block_diag of many 1x1 blocks dispatches several operators a block inside one native section."""
    import torch
    torch.set_num_threads(1)
    blocks = [torch.ones(1, 1) for _ in range(64)]
    block_diag = torch._C._VariableFunctions.block_diag
    with torch.no_grad():
        for _ in range(turns):
            block_diag(blocks)


# A slice: some ms, so that blocks are written in it as often as in a long run.
WHAT = {"python": (python_calls, 100_000), "c": (c_calls, 200_000), "op": (operators, 100)}

if __name__ == "__main__":
    function, turns = WHAT[sys.argv[1]]
    if len(sys.argv) > 2:
        function(int(sys.argv[2]))
    else:
        for _ in sys.stdin:
            function(max(turns // 100, 1))
            start = time.perf_counter_ns()
            function(turns)
            print((time.perf_counter_ns() - start) / turns, flush=True)
