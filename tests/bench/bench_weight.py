"""Is what tare takes out of a trace what it put into the program? The part `weight` of bench.py.

The same passes bare and traced in turn (servers.py). Uncorrected: how much slower a traced pass is by the program's own
clock. Corrected: what `tare report` says that a pass takes, against the bare program's: 0 is meant. Medians of all passes
of some processes: a pass is short, and what else this machine does falls into few of them. Where it falls into most, as on
a virtual machine whose processors others slow for seconds, the fastest tenth of the passes says more: a row of its own.
"""
import json
import os
import pathlib
import re
import statistics
import subprocess
import sys

from servers import HERE, TARE, servers

ALL = "frames,ops,cuda"
PASSES = HERE / "passes.py"
LINE = next(number for number, line in enumerate(PASSES.read_text().splitlines(), 1) if "# line: passes" in line)

# Name, of passes.py, whether it wants torch, and passes of a slice: some 10 ms.
PROGRAMS = [
    ("the loop of the budgets", "loop", True, 12),
    ("Python calls", "calls", False, 60),
    ("operators on small CPU tensors", "tiny", True, 40),
    ("eight Python threads", "threads", False, 2),
    ("examples/train.py", "train", True, 4),
    ("DataLoader, two workers", "loader", True, 12),
]


def pythons():
    """3.11 to 3.13, beside the one that runs this."""
    found = {}
    root = pathlib.Path(os.environ.get("PYENV_ROOT") or pathlib.Path.home() / ".pyenv")
    for path in sorted(root.glob("versions/3.1[123].*/bin/python3")):
        version = re.search(r"versions/(3\.\d+)\.", str(path))[1]
        found.setdefault(version, path)
    return found


def calibrate(python):
    subprocess.run([TARE, "calibrate", python], check=True, stdout=subprocess.DEVNULL)


def pass_ns(trace):
    """The median and the fastest tenth's pass of the loop in passes.py, by its trace."""
    done = subprocess.run([TARE, "report", "--format", "json", "--loop", f"passes.py:{LINE}", trace], check=True,
                          capture_output=True, text=True)
    found = json.loads(done.stdout)["loops"][0]["pass_ns"]
    return found["median"], found["p10"]


def percentiles(times):
    ordered = sorted(times)
    return statistics.median(ordered), ordered[len(ordered) // 10]


def percent_off(times, bare):
    return [(time / its - 1) * 100 for time, its in zip(times, bare)]


def measure(options, folder, python, program, count, sim):
    """Percent that a traced pass is slower than a bare one, by the program and by tare: [median, p10] of each set of processes."""
    raw, corrected = [], []
    command = [python, PASSES, program]
    for number in range(options.sets):
        traces = folder / f"{program}-{number}"
        traces.mkdir(exist_ok=True)
        times = {False: [], True: []}
        with servers((command, None, None, sim), (command, ALL, f"{traces}/%p.tare", sim)) as both:
            pid = both[1].process.pid
            for turn in range(2 * options.slices):
                is_traced = turn % 4 in (1, 2)
                times[is_traced] += both[is_traced].ask(count)
        bare = percentiles(times[False])
        raw.append(percent_off(percentiles(times[True]), bare))
        corrected.append(percent_off(pass_ns(traces / f"{pid}.tare"), bare))
        for path in traces.iterdir():
            path.unlink()
    return raw, corrected


def bench_weight(options, folder, row_of):
    os.environ["XDG_CACHE_HOME"] = str(folder / "cache")
    rows = []
    known = set()
    for title, program, torch, count in PROGRAMS:
        if options.programs and program not in options.programs.split(","):
            continue
        chosen = {"": pathlib.Path(sys.executable)} if torch else pythons() or {"": pathlib.Path(sys.executable)}
        for version, python in chosen.items():
            if python not in known:
                calibrate(python)
                known.add(python)
            raw, corrected = measure(options, folder, python, program, count, program in ("loop", "train"))
            name = f"{title}, CPython {version}" if version else title
            uncorrected = row_of(f"{name}: traced", "% slower", None)
            uncorrected.values = [median for median, _ in raw]
            row = row_of(f"{name}: tare's own taken out", "% off", 2, better="near")
            row.values = [median for median, _ in corrected]
            fastest = row_of(f"{name}: the same, of the fastest tenth", "% off", None)
            fastest.values = [p10 for _, p10 in corrected]
            rows += [uncorrected, row, fastest]
            print(f"  {name}: {statistics.median(uncorrected.values):+.1f} %, tare's own taken out "
                  + ", ".join(f"{median:+.1f} ({p10:+.1f}) %" for median, p10 in corrected), file=sys.stderr, flush=True)
    return rows
