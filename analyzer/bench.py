"""Times the rows of `tare bench` as they are asked for, in a process of its own: bare, or traced.

    bench.py ROWS     ROWS: a file, JSON: [{"name", "group", "setup", "statement"}]

Says what it runs on, then answers each line on stdin with one line of JSON on stdout:

    mean I              the row's own timer by its published definition, ns a statement: "times", of one;
                        of PyTorch "blocked" too, the times of blocked_autorange
    timer I             the same timer: "times" of many short blocks
    loop I N BLOCKS     runs the row's statement N times in each of BLOCKS blocks; "times" of them. In a trace
                        a block is a pass of the outer loop of the code object in the file tare-bench/NAME.
"""
import functools
import gc
import itertools
import json
import platform
import sys
import time
import timeit

try:
    import torch
    import torch.utils.benchmark
except ImportError:
    torch = None

BLOCK_S = 0.0003  # of a block, for the timers: long against the clock, short against the scheduler
BLOCKS = 20

# The first statement is at a higher offset than mark(): so each block is told from the one before.
LOOP = """
def run(_blocks, _count, _mark, _repeat):
    {setup}
    for _block in _blocks:
        _mark()
        for _turn in _repeat(None, _count):
            {statement}
    _mark()
"""


def indented(text, columns):
    return text.replace("\n", "\n" + " " * columns) or "pass"


@functools.lru_cache(maxsize=None)
def loop_of(number):
    row = rows[number]
    source = LOOP.format(setup=indented(row["setup"], 4), statement=indented(row["statement"], 12))
    names = {"torch": torch}
    exec(compile(source, "tare-bench/" + row["name"], "exec"), names)
    return names["run"]


def loop(number, count, blocks):
    run, times, clock = loop_of(number), [], time.perf_counter_ns

    def mark():
        times.append(clock())

    gc.collect()
    gc.disable()
    run(range(blocks), count, mark, itertools.repeat)
    gc.enable()
    return {"times": [(end - start) / count for start, end in zip(times, times[1:])]}


def seconds(timer, count):
    """Of one statement, in a block of so many."""
    took = timer.timeit(count)
    return took / count if isinstance(took, float) else took.mean


@functools.lru_cache(maxsize=None)
def timer_of(number):
    """The timer, and how many statements a block of it holds."""
    row = rows[number]
    kind = timeit.Timer if row["group"] == "python" else torch.utils.benchmark.Timer
    timer = kind(row["statement"], row["setup"] or "pass")
    count = 1
    while seconds(timer, count) * count < BLOCK_S:
        count *= 2
    return timer, count


def mean(number):
    timer, _ = timer_of(number)
    if rows[number]["group"] != "python":
        blocks = timer.blocked_autorange(min_run_time=0.2)
        return {"times": [timer.timeit(10000).mean * 1e9], "blocked": [s * 1e9 for s in blocks.times]}
    total, spent = timer.autorange()
    return {"times": [spent / total * 1e9]}


def timer(number):
    timer, count = timer_of(number)
    return {"times": [seconds(timer, count) * 1e9 for _ in range(BLOCKS)]}


def answer(line):
    what, *numbers = line.split()
    try:
        found = {"loop": loop, "mean": mean, "timer": timer}[what](*map(int, numbers))
    except Exception as error:
        found = {"error": f"{type(error).__name__}: {error}"}
    print(json.dumps(found), flush=True)


with open(sys.argv[1], encoding="utf-8") as file:
    rows = json.load(file)
machine = {"python": platform.python_version(), "torch": None, "cuda": None, "device": None}
if torch:
    torch.set_num_threads(1)
    torch.empty(1)
    machine.update(torch=torch.__version__, cuda=torch.version.cuda)
    if torch.cuda.is_available():
        machine["device"] = torch.cuda.get_device_name()
print(json.dumps(machine), flush=True)
# A loop of ours would be one around all others.
list(map(answer, sys.stdin))
