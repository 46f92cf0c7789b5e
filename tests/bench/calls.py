"""Tight loops, each printing ns a turn: the cost of one kind of event is the difference to bare.

    calls.py python     f(), a Python call
    calls.py c          len(x), a C call
    calls.py op         many nested operators inside one native section
    calls.py WHAT N     N turns, printing nothing: to count the events of a turn in its trace
"""
import sys
import time


def best(function, turns, rounds=7):
    times = []
    for _ in range(rounds):
        start = time.perf_counter_ns()
        function(turns)
        times.append((time.perf_counter_ns() - start) / turns)
    return sorted(times)[len(times) // 2]


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
    blocks = [torch.ones(1, 1) for _ in range(64)]
    block_diag = torch._C._VariableFunctions.block_diag
    with torch.no_grad():
        for _ in range(turns):
            block_diag(blocks)


WHAT = {"python": (python_calls, 300_000), "c": (c_calls, 1_000_000), "op": (operators, 1_000)}

if __name__ == "__main__":
    function, turns = WHAT[sys.argv[1]]
    if len(sys.argv) > 2:
        turns = int(sys.argv[2])
        function(turns)
    else:
        print(best(function, turns))
