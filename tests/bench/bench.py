"""The budgets: what tracing costs, each as a ratio or a paired difference in interleaved rounds.

    bench.py [--rounds N] [--only NAME,...] [--out FOLDER]

Prints a table and writes FOLDER/bench.json and bench.md. Every figure is the median over the rounds of
traced against bare in the same round; peers run in the same rounds on the same loop. Exit status 0 also
where a budget is missed: it says so in the table.
"""
import argparse
import json
import os
import pathlib
import platform
import re
import statistics
import subprocess
import sys
import tempfile
import time

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parent.parent
BUILD = pathlib.Path(os.environ.get("TARE_BUILD", ROOT / "build"))
LIBTARE = BUILD / "libtare.so"
TARE = BUILD / "tare"
SIM_RUN = ROOT / "tests" / "sim" / "run"


def has_gpu():
    return pathlib.Path("/dev/nvidia0").exists()


def run(command, layers=None, output=None, sim=False, check=True):
    """Runs `command`, traced where `layers` is given; returns the completed process."""
    environment = dict(os.environ, OMP_NUM_THREADS="1", TARE_SIM_KERNEL_US="0.5")
    environment.pop("LD_PRELOAD", None)
    if layers:
        environment.update(LD_PRELOAD=str(LIBTARE), TARE_LAYERS=layers, TARE_OUTPUT=str(output))
    if sim and not has_gpu():
        command = [SIM_RUN, "--", *command]
    return subprocess.run([str(part) for part in command], env=environment, check=check,
                          capture_output=True, text=True)


def number(process):
    return float(process.stdout.split()[0])


class Row:
    """One line of the table."""

    def __init__(self, name, unit, budget, stretch=None, better="below"):
        self.name, self.unit, self.budget, self.stretch, self.better = name, unit, budget, stretch, better
        self.values, self.note = [], ""

    @property
    def value(self):
        return statistics.median(self.values) if self.values else None

    @property
    def verdict(self):
        if self.value is None:
            return "not measured"
        if self.budget is None:
            return ""
        def within(limit):
            return self.value <= limit if self.better == "below" else self.value >= limit
        if self.stretch is not None and within(self.stretch):
            return "stretch met"
        return "met" if within(self.budget) else "MISSED"

    def as_dict(self):
        return {"name": self.name, "unit": self.unit, "value": self.value, "budget": self.budget,
                "stretch": self.stretch, "verdict": self.verdict, "rounds": self.values, "note": self.note}


def bench_loop(rounds, folder):
    """The overhead-bound loop: all host layers, CUDA calls only, and the peers."""
    python = [sys.executable, HERE / "loop.py", "--steps", "300"]
    variants = {
        "loop, all host layers": (python, "frames,ops,cuda", 6, 5),
        "loop, CUDA calls only": (python, "cuda", 1.5, 0.5),
        "loop, RecordFunction instead of taps": (python, "frames,ops-rf,cuda", None, None),
        "loop, torch.profiler (CPU)": ([*python, "--tool", "profiler"], None, None, None),
        "loop, torch.profiler (CPU, with_stack)": ([*python, "--tool", "profiler-stack"], None, None, None),
        "loop, VizTracer": ([*python, "--tool", "viztracer"], None, None, None),
        "loop, cProfile": ([*python, "--tool", "cprofile"], None, None, None),
    }
    rows = {name: Row(name, "% slower", budget, stretch)
            for name, (_, _, budget, stretch) in variants.items()}
    size = Row("trace size", "bytes a span", 3, 2.5)
    for round_number in range(rounds):
        order = list(variants)
        if round_number % 2:
            order.reverse()
        # Bare before and after each variant: drift of the machine falls out.
        before = number(run(python, sim=True))
        for name in order:
            command, layers, _, _ = variants[name]
            output = folder / f"loop-{round_number}-{order.index(name)}.tare"
            traced = number(run(command, layers, output, sim=True))
            after = number(run(python, sim=True))
            rows[name].values.append((traced / ((before + after) / 2) - 1) * 100)
            before = after
            if name == "loop, all host layers":
                info = json.loads(subprocess.run([TARE, "info", "--format", "json", output], check=True,
                                                 capture_output=True, text=True).stdout)
                size.values.append(bytes_a_span(info))
            if output.exists():
                output.unlink()
    return [*rows.values(), size]


def bytes_a_span(info):
    """Bytes of the finished event frames for each of their spans."""
    found = info["traces"][0]
    return found["event_bytes"] / found["spans"]


def paired(name, unit, budget, stretch, rounds, command, layers, folder, scale=1.0, sim=False):
    """Bare and traced in turn; the row holds the differences."""
    row = Row(name, unit, budget, stretch)
    for round_number in range(rounds):
        output = folder / f"paired-{round_number}.tare"
        pair = {}
        for traced in (False, True) if round_number % 2 else (True, False):
            pair[traced] = number(run(command, layers if traced else None, output, sim=sim))
        row.values.append((pair[True] - pair[False]) * scale)
        for trace in folder.glob("paired-*"):
            trace.unlink()
    return row


def operators_a_turn(folder):
    """How many operators one turn of `calls.py op` dispatches: from two traces of different length."""
    counts = []
    for turns in (10, 20):
        output = folder / f"count-{turns}.tare"
        run([sys.executable, HERE / "calls.py", "op", str(turns)], "ops", output)
        text = subprocess.run([TARE, "dump", "--events", output], check=True, capture_output=True,
                              text=True).stdout
        counts.append(len(re.findall(r"\bOP\b", text)))
        output.unlink()
    return (counts[1] - counts[0]) / 10


def bench_events(rounds, folder):
    """ns an event, from tight loops."""
    python = sys.executable
    rows = [
        paired("a Python call", "ns", 60, 45, rounds, [python, HERE / "calls.py", "python"], "frames", folder),
        paired("a C call from Python", "ns", 1, 0, rounds, [python, HERE / "calls.py", "c"], "frames", folder),
    ]
    rows[1].note = "0 is meant; 1 ns is what this measurement can tell"
    a_turn = operators_a_turn(folder)
    rows.append(paired("an operator (tap)", "ns", 30, 20, rounds, [python, HERE / "calls.py", "op"], "ops",
                       folder, scale=1 / a_turn))
    rows[-1].note = f"{a_turn:.0f} operators in one native section, the section's cost included"
    binary = BUILD / "bench" / "cuda_calls"
    if binary.exists():
        rows.append(paired("a CUDA call", "ns", 60, 40, rounds, [binary], "cuda", folder))
    return rows


def wall_s(command, layers=None, output=None):
    start = time.perf_counter()
    run(command, layers, output)
    return time.perf_counter() - start


def bench_start(rounds, folder):
    """import torch, and a child that has nothing to do with Python."""
    imports = Row("import torch", "% slower", 10, 5)
    child = Row("a non-Python child", "ms", 0.3)
    command = [sys.executable, "-c", "import torch"]
    many = ["sh", "-c", "i=0; while [ $i -lt 200 ]; do /bin/true; i=$((i+1)); done"]
    for _ in range(rounds):
        output = folder / "start.tare"
        bare, traced = wall_s(command), wall_s(command, "frames,ops,cuda", output)
        imports.values.append((traced / bare - 1) * 100)
        child.values.append((wall_s(many, "frames,ops,cuda", output) - wall_s(many)) / 200 * 1000)
        for trace in folder.glob("*.tare"):
            trace.unlink()
    return [imports, child]


MEMORY = """
import threading, sys
def f(): pass
def work():
    for _ in range(200_000): f()
    gate.wait()
gate = threading.Barrier(int(sys.argv[1]) + 1)
threads = [threading.Thread(target=work) for _ in range(int(sys.argv[1]))]
for thread in threads: thread.start()
for _ in range(200_000): f()
gate.wait()
for line in open("/proc/self/status"):
    if line.startswith("VmRSS"): print(int(line.split()[1]) / 1024)
for thread in threads: thread.join()
"""


def bench_memory(rounds, folder):
    """Resident memory, of a small program with one thread and with nine."""
    row = Row("resident memory, one thread", "MB more", 8)
    thread = Row("resident memory, each further thread", "MB more", 0.5)
    for _ in range(rounds):
        more = []
        for threads in ("0", "8"):
            command = [sys.executable, "-c", MEMORY, threads]
            bare = number(run(command))
            more.append(number(run(command, "frames,ops,cuda", folder / "memory.tare")) - bare)
            for trace in folder.glob("*.tare"):
                trace.unlink()
        row.values.append(more[0])
        thread.values.append((more[1] - more[0]) / 8)
    return [row, thread]


REPORT = """
import resource, subprocess, sys, time
start = time.perf_counter()
subprocess.run(sys.argv[1:], stdout=subprocess.DEVNULL, check=True)
print(time.perf_counter() - start, resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 1024)
"""


def bench_report(folder, large):
    """`tare report` on generated traces: spans a second, and its peak memory on a short and a long one."""
    speed = Row("tare report", "million spans/s", 20, 40, better="above")
    memory = Row("tare report, peak memory of the long trace against the short", "times", 1.5)
    peaks = []
    for spans in (large // 10, large):
        trace = folder / f"generated-{spans}.tare"
        subprocess.run([BUILD / "tests" / "tare_gen", trace, "--spans", str(spans)], check=True,
                       stdout=subprocess.DEVNULL)
        runs = [subprocess.run([sys.executable, "-c", REPORT, TARE, "report", trace], check=True,
                               capture_output=True, text=True).stdout.split() for _ in range(3)]
        seconds = statistics.median(float(run[0]) for run in runs)
        peaks.append(float(runs[0][1]))
        trace.unlink()
        if spans == large:
            speed.values.append(spans / seconds / 1e6)
            speed.note = f"{spans / 1e6:.0f} million spans in {seconds:.2f} s"
    memory.values.append(peaks[1] / peaks[0])
    memory.note = f"{peaks[0]:.0f} MB for {large / 1e7:.0f} million, {peaks[1]:.0f} MB for {large / 1e6:.0f} million"
    return [speed, memory]


def markdown(rows, machine):
    lines = [f"Measured on {machine['cpu']}, {machine['cores']} cores, device: {machine['device']}, "
             f"Python {machine['python']}, {machine['date']}.", "",
             "| what | figure | budget | stretch | |", "|---|---|---|---|---|"]
    for row in rows:
        def limit(value):
            return "" if value is None else f"{value:g}"
        figure = "–" if row.value is None else f"{row.value:.3g} {row.unit}"
        note = f" ({row.note})" if row.note else ""
        lines.append(f"| {row.name}{note} | {figure} | {limit(row.budget)} | {limit(row.stretch)} | {row.verdict} |")
    return "\n".join(lines) + "\n"


def cpu_name():
    for line in open("/proc/cpuinfo"):
        if line.startswith("model name"):
            return line.split(":", 1)[1].strip()
    return platform.processor()


def main():
    parts = ["events", "start", "memory", "report", "loop"]
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--only", default=",".join(parts), help="of " + ",".join(parts))
    parser.add_argument("--spans", type=int, default=50_000_000, help="of the long generated trace")
    parser.add_argument("--out", type=pathlib.Path, default=BUILD / "bench")
    options = parser.parse_args()
    options.out.mkdir(parents=True, exist_ok=True)
    rows = []
    with tempfile.TemporaryDirectory(prefix="tare-bench-") as name:
        folder = pathlib.Path(name)
        for part in options.only.split(","):
            print(f"{part} ...", file=sys.stderr, flush=True)
            if part == "events":
                rows += bench_events(options.rounds, folder)
            elif part == "start":
                rows += bench_start(options.rounds, folder)
            elif part == "memory":
                rows += bench_memory(min(options.rounds, 3), folder)
            elif part == "report":
                rows += bench_report(folder, options.spans)
            elif part == "loop":
                rows += bench_loop(options.rounds, folder)
            else:
                parser.error(f"no part {part!r}; there are {', '.join(parts)}")
    machine = {"cpu": cpu_name(), "cores": os.cpu_count(), "python": platform.python_version(),
               "device": "NVIDIA GPU" if has_gpu() else "simulated", "date": time.strftime("%Y-%m-%d")}
    table = markdown(rows, machine)
    (options.out / "bench.md").write_text(table)
    (options.out / "bench.json").write_text(json.dumps({"machine": machine, "rows": [row.as_dict() for row in rows]},
                                                       indent=1))
    print(table)


if __name__ == "__main__":
    main()
