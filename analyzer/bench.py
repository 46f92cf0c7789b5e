"""Times the rows of `tare bench` as they are asked for, in a process of its own: bare, or traced.

    bench.py ROWS     ROWS: a file, JSON: [{"name", "group", "setup", "statement"}]

Says what it runs on, then answers each line on stdin with one line of JSON on stdout:

    timer I             what the row's own timer finds, ns a statement: "mean" by its published
                        definition, "times" of many blocks
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


@functools.lru_cache(maxsize=None)
def timer_of(number):
    """The timer, and how many statements a block of it holds."""
    row = rows[number]
    kind = timeit.Timer if row["group"] == "python" else torch.utils.benchmark.Timer
    timer = kind(row["statement"], row["setup"] or "pass")
    count = 1
    while row["group"] == "python" and timer.timeit(count) < BLOCK_S:
        count *= 2
    return timer, count


def time_python(number):
    timer, count = timer_of(number)
    total, spent = timer.autorange()
    return {"mean": spent / total * 1e9, "times": [s / count * 1e9 for s in timer.repeat(BLOCKS, count)]}


def time_torch(number):
    timer, _ = timer_of(number)
    mean = timer.timeit(10000).mean
    blocks = timer.blocked_autorange(min_run_time=0.05)
    return {"mean": mean * 1e9, "times": [s * 1e9 for s in blocks.times]}


def answer(line):
    what, *numbers = line.split()
    numbers = [int(number) for number in numbers]
    try:
        if what == "loop":
            found = loop(*numbers)
        else:
            found = (time_python if rows[numbers[0]]["group"] == "python" else time_torch)(*numbers)
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
