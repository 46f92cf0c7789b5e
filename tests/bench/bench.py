"""The budgets: what tracing costs, and whether tare's own figures agree with timers.

    bench.py [--sets N] [--slices N] [--only PART,...] [--out FOLDER]

Each figure is measured with several sets of processes (servers.py), of which the median counts; least and most
are shown beside it. Writes FOLDER/bench.json and bench.md, prints the latter. Parts that are not measured this time
stay in them as they were. Exit status 0 also where a budget is missed: the table says so.
"""
import argparse
import json
import os
import pathlib
import platform
import re
import resource
import statistics
import subprocess
import sys
import tempfile
import time

from bench_weight import bench_weight
from servers import BUILD, HERE, TARE, difference, has_gpu, ratios, run, servers

ALL = "frames,ops,cuda"


class Row:
    """One line of the table. `values`: one for each set of processes."""

    def __init__(self, name, unit, budget, stretch=None, better="below", note=""):
        self.name, self.unit, self.budget, self.stretch, self.better = name, unit, budget, stretch, better
        self.values, self.note = [], note

    def verdict(self, value):
        if value is None:
            return "not measured"
        if self.budget is None:
            return ""

        if self.better == "near":
            return "met" if abs(value) <= self.budget else "MISSED"

        def within(limit):
            return value <= limit if self.better == "below" else value >= limit
        if self.stretch is not None and within(self.stretch):
            return "stretch met"
        return "met" if within(self.budget) else "MISSED"

    def as_dict(self):
        value = statistics.median(self.values) if self.values else None
        return {"name": self.name, "unit": self.unit, "value": value, "least": min(self.values, default=None),
                "most": max(self.values, default=None), "values": self.values, "budget": self.budget,
                "stretch": self.stretch, "verdict": self.verdict(value), "note": self.note}


# ------------------------------------------------------------------------------- the loop

STEPS = 20  # of a slice: long enough that blocks are written in each


def bench_loop(options, folder):
    """The overhead-bound loop: all host layers, CUDA calls only, RecordFunction instead of taps, and the peers."""
    python = [sys.executable, HERE / "loop.py", "--serve"]
    traced = [Row("loop, all host layers", "% slower", 6, 5), Row("loop, CUDA calls only", "% slower", 1.5, 0.5),
              Row("loop, RecordFunction instead of taps", "% slower", None),
              Row("loop, all host layers and gpu", "% slower", None,
                  note="" if has_gpu() else "the simulated CUPTI's own cost is in it")]
    layers = [ALL, "cuda", "frames,ops-rf,cuda", f"{ALL},gpu"]
    peers = [Row("loop, torch.profiler (CPU)", "% slower", None),
             Row("loop, torch.profiler (CPU, with_stack)", "% slower", None),
             Row("loop, VizTracer", "% slower", None), Row("loop, cProfile", "% slower", None)]
    tools = ["profiler", "profiler-stack", "viztracer", "cprofile"]
    size = Row("trace size", "bytes a span", 3, 2.5)
    for number in range(options.sets):
        traces = [folder / f"loop-{number}-{index}.tare" for index in range(len(layers))]
        with servers((python, None, None, True), *((python, layer, trace, True)
                                                   for layer, trace in zip(layers, traces))) as (bare, *others):
            for row, ratio in zip(traced, ratios(bare, others, options.slices, STEPS)):
                row.values.append((ratio - 1) * 100)
        size.values.append(bytes_a_span(traces[0]))
        for trace in traces:
            trace.unlink()
        with servers((python, None, None, True), *(([*python, "--tool", tool], None, None, True)
                                                   for tool in tools)) as (bare, *others):
            for row, ratio in zip(peers, ratios(bare, others, max(options.slices // 10, 3), STEPS)):
                row.values.append((ratio - 1) * 100)
    return [*traced, *peers, size]


def bytes_a_span(trace):
    """Bytes of the finished event frames for each of their spans."""
    info = json.loads(subprocess.run([TARE, "info", "--format", "json", trace], check=True,
                                     capture_output=True, text=True).stdout)
    found = info["traces"][0]
    return found["event_bytes"] / found["spans"]


# ------------------------------------------------------------------------------- events

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


def bench_events(options, folder):
    """ns an event, from tight loops: enter, leave and compression."""
    a_turn = operators_a_turn(folder)
    calls = [sys.executable, HERE / "calls.py"]
    what = [
        (Row("a Python call", "ns", 60, 45), [*calls, "python"], "frames", 1),
        (Row("a C call from Python", "ns", 1, 0, note="0 is meant; 1 ns is what this can tell"), [*calls, "c"],
         "frames", 1),
        (Row("an operator (tap)", "ns", 30, 20,
             note=f"{a_turn:.0f} in one native section, the section's cost included"), [*calls, "op"], "ops", a_turn),
        (Row("a CUDA call", "ns", 60, 40), [BUILD / "bench" / "cuda_calls"], "cuda", 1),
    ]
    for row, command, layers, scale in what:
        for number in range(options.sets):
            output = folder / f"events-{number}.tare"
            with servers((command,), (command, layers, output)) as (bare, traced):
                row.values.append(difference(bare, traced, options.slices // 2) / scale)
            output.unlink()
    return [row for row, *_ in what]


# ------------------------------------------------------------------------------- start, memory

def cpu_s(command, layers=None, output=None):
    """User and system time of the command and its children: the wall's noise is not in it."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    run(command, layers, output)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def bench_start(options, folder):
    """import torch, and a child that has nothing to do with Python."""
    imports = Row("import torch", "% slower", 10, 5, note="processor time")
    child = Row("a non-Python child", "ms", 0.3, note="processor time")
    command = [sys.executable, "-c", "import torch"]
    many = ["sh", "-c", "i=0; while [ $i -lt 100 ]; do /bin/true; i=$((i+1)); done"]
    for row, what, figure in ((imports, command, lambda bare, traced: (traced / bare - 1) * 100),
                              (child, many, lambda bare, traced: (traced - bare) / 100 * 1000)):
        cpu_s(what)
        for number in range(max(options.sets, 5)):
            times = {layers: [] for layers in (None, ALL)}
            for layers in (None, ALL, ALL, None):
                times[layers].append(cpu_s(what, layers, f"{folder}/start/"))
            row.values.append(figure(min(times[None]), min(times[ALL])))
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


def bench_memory(options, folder):
    """Resident memory, of a small program with one thread and with nine."""
    row = Row("resident memory, one thread", "MB more", 8)
    thread = Row("resident memory, each further thread", "MB more", 0.5)
    for number in range(options.sets):
        more = []
        for threads in ("0", "8"):
            command = [sys.executable, "-c", MEMORY, threads]
            bare, traced = (float(run(command, layers, f"{folder}/memory/").stdout) for layers in (None, ALL))
            more.append(traced - bare)
        row.values.append(more[0])
        thread.values.append((more[1] - more[0]) / 8)
    return [row, thread]


# ------------------------------------------------------------------------------- the command

REPORT = """
import resource, subprocess, sys, time
start = time.perf_counter()
subprocess.run(sys.argv[1:], stdout=subprocess.DEVNULL, check=True)
print(time.perf_counter() - start, resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 1024)
"""


def bench_report(options, folder):
    """`tare report` on generated traces: spans a second, and its peak memory on a short and a long one."""
    large = options.spans
    speed = Row("tare report", "million spans/s", 20, 40, better="above")
    memory = Row("tare report, peak memory of the long trace against the short", "times", 1.5)
    peaks = []
    for spans in (large // 10, large):
        trace = folder / f"generated-{spans}.tare"
        subprocess.run([BUILD / "tests" / "tare_gen", trace, "--spans", str(spans)], check=True,
                       stdout=subprocess.DEVNULL)
        runs = [subprocess.run([sys.executable, "-c", REPORT, TARE, "report", trace], check=True,
                               capture_output=True, text=True).stdout.split() for _ in range(options.sets)]
        peaks.append(float(runs[0][1]))
        trace.unlink()
        if spans == large:
            speed.values += [spans / float(seconds) / 1e6 for seconds, _ in runs]
            speed.note = f"{spans / 1e6:.0f} million spans"
    memory.values.append(peaks[1] / peaks[0])
    memory.note = f"{peaks[0]:.0f} MB for {large / 1e7:.0f} million, {peaks[1]:.0f} MB for {large / 1e6:.0f} million"
    return [speed, memory]


def bench_rows(options, folder):
    """`tare bench` several times: for each of its rows the run in which the trace was furthest off the timer."""
    worst, verdicts = {}, {}
    command = [TARE, "bench", "--python", sys.executable, "--rounds", str(options.rounds), "--format", "json"]
    for number in range(options.runs):
        found = json.loads(options.rows_from[number].read_text() if options.rows_from else
                           subprocess.run(command, check=True, capture_output=True, text=True).stdout)
        for row in found["rows"]:
            if row["within"] is None:
                worst.setdefault(row["name"], row)
                continue
            share = abs(row["difference_ns"]) / row["tolerance_ns"]
            verdicts.setdefault(row["name"], []).append(row["within"])
            if share >= worst.get(row["name"], {"share": 0})["share"]:
                worst[row["name"]] = dict(row, share=share)
    rows = []
    for group, title in (("pytorch", "PyTorch"), ("python", "Python")):
        shares = [row["share"] for row in worst.values() if row["group"] == group and "share" in row]
        off = [name for name, row in worst.items() if row["group"] == group and not all(verdicts.get(name, []))]
        rows.append(Row(f"tare bench, {title} rows: the worst difference of {options.runs} runs", "of what is allowed", 1,
                        note=f"{len(shares) - len(off)} of {len(shares)} rows agree in every run"
                             + (f"; not {', '.join(off)}" if off else "")))
        rows[-1].values = [max(shares)] if shares else []
    return rows, list(worst.values())


# ------------------------------------------------------------------------------- output

def microseconds(ns):
    return "" if ns is None else f"{ns / 1000:.4f}" if ns < 1000 else f"{ns / 1000:.2f}"


def reference_table(rows, runs):
    """The rows of `tare bench`, each in the run in which tare was furthest off."""
    simulated = any(row["host_cost_only"] for row in rows)
    lines = ["", f"`tare bench`: µs a statement. Of {runs} runs that one is shown, for each row, in which the traced "
             "figure was furthest from the timer's." + (" Rows on a GPU: simulated, host cost only." if simulated else ""),
             "", "| row | published | timeit, mean | blocked_autorange | timer, short blocks | IQR | tare | off by | allowed | |",
             "|---|--:|--:|--:|--:|--:|--:|--:|--:|---|"]
    for row in rows:
        timer, tare = row["timer_ns"] or {}, row["tare_ns"] or {}
        cells = [row["published_ns"], timer.get("mean"), (row["blocked_ns"] or {}).get("median"), timer.get("median"), timer.get("iqr"), tare.get("median"),
                 row["difference_ns"], row["tolerance_ns"]]
        said = row["unknown"] or ("the timer's alone" if not tare else "agrees" if row["within"] else "OFF")
        lines.append(f"| {row['name']} | " + " | ".join(microseconds(cell) for cell in cells) + f" | {said} |")
    return lines


def markdown(parts):
    lines = []
    for machine in dict.fromkeys(json.dumps(part["machine"]) for part in parts.values()):
        names = [name for name, part in parts.items() if json.dumps(part["machine"]) == machine]
        said = json.loads(machine)
        lines += [f"Measured on {said['cpu']}, {said['cores']} cores, device: {said['device']}, "
                  f"Python {said['python']}, {said['date']}" + (f" ({', '.join(names)})." if len(parts) > len(names) else "."),
                  ""]
    lines += ["| what | figure | least–most | budget | stretch | |", "|---|---|---|---|---|---|"]
    for part in parts.values():
        for row in part["rows"]:
            limits = ["" if row[key] is None else f"{row[key]:g}" for key in ("budget", "stretch")]
            figure = "–" if row["value"] is None else f"{row['value']:.3g} {row['unit']}"
            spread = f"{row['least']:.3g}–{row['most']:.3g}" if len(row["values"]) > 1 else ""
            note = f" ({row['note']})" if row["note"] else ""
            lines.append(f"| {row['name']}{note} | {figure} | {spread} | {limits[0]} | {limits[1]} | {row['verdict']} |")
    if "rows" in parts:
        lines += reference_table(parts["rows"]["reference"], parts["rows"]["runs"])
    return "\n".join(lines) + "\n"


def cpu_name():
    for line in open("/proc/cpuinfo"):
        if line.startswith("model name"):
            return line.split(":", 1)[1].strip()
    return platform.processor()


def weight_part(options, folder):
    return bench_weight(options, folder, Row)


PARTS = {"loop": bench_loop, "events": bench_events, "start": bench_start, "memory": bench_memory,
         "report": bench_report, "rows": bench_rows,
         "weight": weight_part}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sets", type=int, default=3, help="of processes, for each comparison")
    parser.add_argument("--slices", type=int, default=60, help="measured by each set")
    parser.add_argument("--runs", type=int, default=5, help="of tare bench")
    parser.add_argument("--rounds", type=int, default=10, help="of each run of tare bench")
    parser.add_argument("--rows-from", type=pathlib.Path, nargs="+", help="JSON of such runs, instead of running it")
    parser.add_argument("--spans", type=int, default=50_000_000, help="of the long generated trace")
    parser.add_argument("--programs", help="of the part weight: of passes.py, all if not told")
    parser.add_argument("--only", default=",".join(PARTS), help="of " + ",".join(PARTS))
    parser.add_argument("--out", type=pathlib.Path, default=BUILD / "bench")
    options = parser.parse_args()
    options.runs = len(options.rows_from or range(options.runs))
    chosen = options.only.split(",")
    for part in chosen:
        if part not in PARTS:
            parser.error(f"no part {part!r}; there are {', '.join(PARTS)}")
    machine = {"cpu": cpu_name(), "cores": os.cpu_count(), "python": platform.python_version(),
               "device": "NVIDIA GPU" if has_gpu() else "simulated", "date": time.strftime("%Y-%m-%d")}
    options.out.mkdir(parents=True, exist_ok=True)
    saved = options.out / "bench.json"
    parts = json.loads(saved.read_text()) if saved.exists() else {}
    for part in chosen:
        print(f"{part} ...", file=sys.stderr, flush=True)
        with tempfile.TemporaryDirectory(prefix="tare-bench-") as name:
            rows, *reference = (found if isinstance(found := PARTS[part](options, pathlib.Path(name)), tuple) else (found,))
        parts[part] = {"machine": machine, "rows": [row.as_dict() for row in rows]}
        if reference:
            parts[part].update(reference=reference[0], runs=options.runs)
        parts = {name: parts[name] for name in PARTS if name in parts}
        saved.write_text(json.dumps(parts, indent=1) + "\n")
        (options.out / "bench.md").write_text(markdown(parts))
    print(markdown(parts))


if __name__ == "__main__":
    main()
