"""
The programs of docs/fidelity.md, one row each: a program that behaves traced as it does bare, and on which
interpreters that is tested. `run_bare_and_traced(…, row=NAME)` belongs to a row and fails for a name that is
not here; `pytest --matrix FILE` keeps in FILE which rows it ran, on what, how that ended and how long it took.

    matrix.py FILE      prints the document; fails where FILE lacks a run, or a run differed (make fidelity)
"""

import collections
import json
import math
import os
import re
import sys

# Where a row is run: on each interpreter; from a version on; on that of the tests alone, which has torch;
# on none: a program without Python.
EACH, OWN, NONE = (3, 9), "own", "none"
WITHOUT_PYTHON = "no Python"

Row = collections.namedtuple("Row", "name where remark", defaults=(EACH, ""))


GROUPS = {
    "Endings": [
        Row("returns from main"),
        Row("sys.exit(3)"),
        Row("an uncaught exception"),
        Row("an uncaught Ctrl-C (SIGINT)"),
        Row("SIGTERM"),
        Row("SIGKILL"),
        Row("abort"),
        Row("a segmentation fault"),
        Row("os._exit"),
        Row("os.execv of another Python"),
        Row("exit during a call"),
        Row("os._exit during a call"),
        Row("SIGKILL during a call"),
        Row("os.execv during a call"),
        Row("exit during a flush", NONE),
        Row("_exit during a flush", NONE),
        Row("abort during a flush", NONE),
        Row("SIGKILL during a flush", NONE),
        Row("execv during a flush", NONE),
        Row("exit while 8 threads make calls", NONE),
        Row("calls and a fork in exit handlers", NONE),
        Row("stack overflow, with a handler", NONE),
    ],
    "Children": [
        Row("fork"),
        Row("fork, the child ends as an interpreter"),
        Row("multiprocessing, fork"),
        Row("multiprocessing, spawn"),
        Row("multiprocessing, forkserver"),
        Row("a manager, a pool of short workers, shared memory, a worker that aborts"),
        Row("DataLoader, 2 workers", OWN),
        Row("DataLoader, persistent workers", OWN),
        Row("DataLoader, a worker that dies", OWN),
        Row("subprocess (vfork)"),
        Row("subprocess: session, preexec_fn, no environment, pty, os.system, os.spawnv"),
        Row("a shell with children"),
        Row("posix_spawn"),
        Row("vfork", NONE),
        Row("a double fork"),
        Row("a daemon: double fork, all descriptors closed"),
        Row("fork while other threads make calls"),
        Row("fork while other threads make CUDA calls", NONE),
        Row("fork during another thread's call"),
        Row("fork during another thread's flush", NONE),
        Row("fork in a signal handler"),
        Row("fork in a signal handler, in our own code", NONE),
        Row("fork at exit"),
        Row("a storm of 100 shells and 3 compilers"),
        Row("a storm of 1000 processes"),
    ],
    "Threads": [
        Row("64 short threads, a pool, one that outlives main"),
        Row("500 threads at once"),
        Row("threads that raise, exit, and finalise"),
        Row("a daemon thread at the end"),
        Row("main ends before its threads (pthread_exit)", NONE),
        Row("threads that are cancelled", NONE),
        Row("calls in destructors of thread-local values", NONE),
        Row("autograd's threads", OWN),
    ],
    "Signals": [
        Row("a handler at 1 kHz"),
        Row("a handler that raises"),
        Row("a handler at 1 kHz that makes CUDA calls", NONE),
        Row("a handler that jumps out of whatever it finds", NONE),
    ],
    "Python": [
        Row("options -I -S"),
        Row("options -I -S -E"),
        Row("options -E"),
        Row("options -W error"),
        Row("options -X dev"),
        Row("options -X tracemalloc"),
        Row("options -OO"),
        Row("options -P", (3, 11), "came with 3.11"),
        Row("options -X perf", (3, 12), "came with 3.12"),
        Row(
            "recursion without end, 21 kinds",
            remark="as deep as bare, and from 3.12 on deeper through C (pyhooks/README.md); 3.12 under a limit of 20000 too",
        ),
        Row("recursion without end in a thread"),
        Row("recursion, 900 deep"),
        Row("generators: closed, thrown into, abandoned, collected"),
        Row("frames thrown into through C"),
        Row("asyncio"),
        Row("exceptions through C"),
        Row("greenlet"),
        Row("gevent: monkey, pool, timeouts, killed, subprocess"),
        Row("sys.settrace, sys.setprofile, sys.monitoring"),
        Row("cProfile, trace, settrace"),
        Row("coverage"),
        Row("debugpy: a breakpoint, a variable, a step"),
        Row("faulthandler"),
        Row("sub-interpreters"),
        Row("exec-made code, freed, addresses used again"),
        Row("another's data on code objects"),
        Row("errno, warnings, tracebacks"),
        Row("a MemoryError under RLIMIT_AS"),
        Row("an embedded interpreter", remark="each that has a shared libpython"),
        Row("a frozen program (PyInstaller)", remark="each that has a shared libpython"),
        Row("a free-threaded build", NONE, "refused: the trace says why"),
        Row("an unknown version", NONE, "refused: the trace says why"),
    ],
    "torch": [
        Row("training", OWN),
        Row("training on the device", OWN),
        Row("hooks, autograd functions, errors in backward", OWN),
        Row("record_function under torch.profiler", OWN),
        Row("torch.profiler on the device", OWN),
        Row("jit.script, jit.trace", OWN),
        Row("torch.compile: eager, aot_eager, graph breaks", OWN),
        Row("torch.compile: inductor", OWN),
        Row("CUDA graphs", OWN),
        Row("set_sync_debug_mode: warn, error", OWN),
        Row("torchrun, 2 ranks on gloo, one killed", OWN),
    ],
    "Loaders and libraries": [
        Row("two CUDA runtimes", NONE),
        Row("jemalloc preloaded", OWN),
        Row("mimalloc preloaded", OWN),
        Row("a malloc that must not be entered twice"),
        Row("ASan preloaded", OWN),
        Row("a program built with ASan", NONE),
        Row("dlopen with RTLD_DEEPBIND", NONE),
        Row("dlclose, again and again", NONE),
        Row("dlopen by RUNPATH and by $ORIGIN", NONE),
        Row("setuid", NONE, "no trace: ld.so ignores the preload; tare record says so"),
        Row("children that are linked statically, or with musl"),
        Row("little address space"),
    ],
    "Files and limits": [
        Row("a disk that fills up"),
        Row("a working directory that cannot be written"),
        Row("a working directory that is removed; chroot"),
        Row("RLIMIT_FSIZE"),
        Row("RLIMIT_NOFILE"),
        Row("closerange, files in the numbers"),
        Row("files in all low numbers, and back"),
    ],
}
ROWS = {row.name: row for rows in GROUPS.values() for row in rows}

HEAD = """\
# What behaves the same with tare

Each program was run bare and traced: standard output, standard error, exit status or signal, and the files that it wrote are
equal; so are, where it can print them, its environment, open descriptors, threads, children, signal handlers and mask. `same`
means that nothing differs. Where a cell is empty the program has no business there: it has no Python in it (column
*no Python*), needs torch, which the tests install for one interpreter, or the remark says why. Nor is anything missing in the
traces: what was called is counted in them. The rows are those of `tests/matrix.py`.

This page is written by `make fidelity`, which runs all of them; `make check` and `make check-slow` run them too. *Time* is
that of all runs of the row, bare and traced, on two cores, when the page was written.
"""


def version_of(column):
    """(3, 11, 2) of 3.11.2-system."""
    return tuple(map(int, re.findall(r"\d+", column)))


def order_of(column):
    return column == WITHOUT_PYTHON, version_of(column), column


def expected(row, column, own):
    """Whether a row is run there. `own`: the column of the tests' interpreter."""
    if column == WITHOUT_PYTHON or row.where == NONE:
        return column == WITHOUT_PYTHON and row.where == NONE
    if row.where == OWN:
        return column == own
    return version_of(column)[:2] >= row.where


def render(columns, cells, seconds):
    """The document. `cells`: {(row, column): text}; `seconds`: {row: number}."""
    lines = [HEAD]
    for group, rows in GROUPS.items():
        shown = [c for c in columns if any((row.name, c) in cells for row in rows)]
        lines += [f"## {group}", "", f"| program | {' | '.join(shown)} | remark | time |"]
        lines += ["|---|" + "---|" * len(shown) + "---|---:|"]
        for row in rows:
            texts = " | ".join(cells.get((row.name, column), "") for column in shown)
            lines.append(f"| {row.name} | {texts} | {row.remark} | {math.ceil(seconds[row.name])} s |")
        lines.append("")
    return "\n".join(lines)


def parse(text):
    """What render was given."""
    columns, cells, seconds = set(), {}, {}
    shown = []
    for line in text.splitlines():
        parts = [part.strip() for part in line.split("|")[1:-1]]
        if parts[:1] == ["program"]:
            shown = parts[1:-2]
            columns.update(shown)
        elif parts and not parts[0].startswith("---"):
            cells.update({(parts[0], c): cell for c, cell in zip(shown, parts[1:-2]) if cell})
            seconds[parts[0]] = float(parts[-1].split()[0])
    return sorted(columns, key=order_of), cells, seconds


class Recorder:
    """Plugin of the process that collects reports: what ran, of which row, where, with what outcome."""

    def __init__(self, path):
        self.path = path
        self.runs = {}

    def pytest_runtest_logreport(self, report):
        mine = {tuple(value) for name, value in report.user_properties if name == "matrix"}
        if report.when != "call" or not mine or report.skipped:
            return
        for row, column in mine:
            outcomes, seconds = self.runs.setdefault(row, {}).setdefault(column, ([], []))
            outcomes.append(report.outcome)
            seconds.append(report.duration / len(mine))

    def pytest_terminal_summary(self, terminalreporter):
        runs = [outcomes for columns in self.runs.values() for outcomes, _ in columns.values()]
        if runs:
            same = sum(set(outcomes) == {"passed"} for outcomes in runs)
            terminalreporter.line(
                f"fidelity: {same} of {len(runs)} the same, {len(self.runs)} of {len(ROWS)} programs"
            )

    def pytest_sessionfinish(self):
        if not self.path:
            return
        kept = {}
        if os.path.exists(self.path):
            with open(self.path) as file:
                kept = json.load(file)
        for row, columns in self.runs.items():
            for column, (outcomes, seconds) in columns.items():
                outcome = "same" if set(outcomes) == {"passed"} else "DIFFERS"
                kept.setdefault(row, {})[column] = [outcome, sum(seconds)]
        with open(self.path, "w") as file:
            json.dump(kept, file, indent=1)


def main(path):
    with open(path) as file:
        kept = json.load(file)
    columns = sorted({column for runs in kept.values() for column in runs}, key=order_of)
    (own,) = kept["training"]
    problems = []
    cells, seconds = {}, {}
    for row in ROWS.values():
        runs = kept.get(row.name, {})
        seconds[row.name] = sum(time for _, time in runs.values())
        for column in columns:
            text = runs[column][0] if column in runs else ""
            if text:
                cells[row.name, column] = text
            if (text == "same") != expected(row, column, own):
                problems.append(f"{row.name}, {column}: {text or 'not run'}")
    sys.stdout.write(render(columns, cells, seconds))
    sys.exit("\n".join(problems) or 0)


if __name__ == "__main__":
    main(sys.argv[1])
