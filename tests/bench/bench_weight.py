"""Is what tare takes out of a trace what it put into the program? The part `weight` of bench.py.

The same passes bare and traced in turn (servers.py). Uncorrected: how much slower a traced pass is. Corrected: the same
with the share that `tare report` takes out of the passes of that loop taken out of it: 0 is meant.
"""
import json
import os
import pathlib
import re
import statistics
import subprocess
import sys

from servers import HERE, TARE, ratios, servers

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


def taken_out(trace):
    """Of the passes' time, what tare says is its own; and how far that may be off."""
    done = subprocess.run([TARE, "report", "--format", "json", "--loop", f"passes.py:{LINE}", trace], check=True,
                          capture_output=True, text=True)
    loop = json.loads(done.stdout)["loops"][0]
    return 1 - loop["pass_ns"]["mean"] * loop["passes"] / loop["total_ns"]


def measure(options, folder, python, program, count, sim):
    """Percent that a traced pass is slower, uncorrected and corrected: of each set of processes."""
    raw, corrected = [], []
    command = [python, PASSES, program]
    for number in range(options.sets):
        trace = folder / f"{program}-{number}" / "traces"
        trace.mkdir(parents=True, exist_ok=True)
        with servers((command, None, None, sim), (command, ALL, f"{trace}/%p.tare", sim)) as (bare, traced):
            pid = traced.process.pid
            ratio, = ratios(bare, [traced], options.slices, count)
        share = taken_out(trace / f"{pid}.tare")
        raw.append((ratio - 1) * 100)
        corrected.append((ratio * (1 - share) - 1) * 100)
        for path in trace.iterdir():
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
            uncorrected.values = raw
            row = row_of(f"{name}: tare's own taken out", "% off", 2, better="near")
            row.values = corrected
            rows += [uncorrected, row]
            print(f"  {name}: {statistics.median(raw):+.1f} % -> {statistics.median(corrected):+.1f} %  {corrected}", file=sys.stderr, flush=True)
    return rows
