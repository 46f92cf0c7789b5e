"""Processes that measure when asked, bare and traced in turn: how the benchmarks see few percent on a noisy machine.

A server is a process that answers each line on stdin with one number on stdout, measured over a slice of
some ms. All servers of a comparison are alive at once, on one core; slices of bare and traced alternate, so
that what drifts hits both alike, and of many pairs the median counts. Processes differ by luck (where
things lie in memory), which no number of slices tells: so each comparison is made with several sets of processes.
"""
import contextlib
import json
import os
import pathlib
import statistics
import subprocess

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parent.parent
BUILD = pathlib.Path(os.environ.get("TARE_BUILD", ROOT / "build")).resolve()
LIBTARE = BUILD / "libtare.so"
TARE = BUILD / "tare"
SIM_RUN = ROOT / "tests" / "sim" / "run"
CORE = max(os.sched_getaffinity(0))  # interrupts like the first


def has_gpu():
    return pathlib.Path("/dev/nvidia0").exists()


def environment_of(layers=None, output=None):
    """OMP_NUM_THREADS=1, and what traces a process where `layers` is given."""
    environment = {k: v for k, v in os.environ.items() if not k.startswith("TARE_") and k != "LD_PRELOAD"}
    environment.update(OMP_NUM_THREADS="1", TARE_SIM_KERNEL_US="0.5", PYTHONHASHSEED="0", KINETO_LOG_LEVEL="99")
    if layers:
        environment.update(LD_PRELOAD=str(LIBTARE), TARE_LAYERS=layers, TARE_OUTPUT=str(output))
    return environment


def command_of(command, sim=False):
    if sim and not has_gpu():
        command = [SIM_RUN, "--build", BUILD, "--", *command]
    return [str(part) for part in command]


def run(command, layers=None, output=None, sim=False):
    """Runs `command` to its end, traced where `layers` is given; returns the completed process."""
    return subprocess.run(command_of(command, sim), env=environment_of(layers, output), check=True,
                          capture_output=True, text=True)


class Server:
    def __init__(self, command, layers=None, output=None, sim=False):
        self.process = subprocess.Popen(command_of(command, sim), env=environment_of(layers, output), text=True,
                                        stdin=subprocess.PIPE, stdout=subprocess.PIPE)

    def ask(self, what=""):
        self.process.stdin.write(f"{what}\n")
        self.process.stdin.flush()
        answer = self.process.stdout.readline()
        if not answer:
            raise RuntimeError(f"a benchmark's process ended: {self.process.args}")
        return json.loads(answer)

    def pin(self):
        """All its threads on one core, the same for all servers."""
        for task in os.listdir(f"/proc/{self.process.pid}/task"):
            os.sched_setaffinity(int(task), {CORE})

    def close(self):
        self.process.stdin.close()
        self.process.stdout.close()
        self.process.wait()


@contextlib.contextmanager
def servers(*arguments):
    """A server for each of the tuples of Server's arguments; started together, then pinned."""
    with contextlib.ExitStack() as stack:
        started = [Server(*each) for each in arguments]
        for server in started:
            stack.callback(server.close)
        for server in started:
            server.ask(1)
            server.pin()
        yield started


def ratios(bare, others, slices, what=""):
    """For each of `others` the median over the slices of its figure by bare's before and after it."""
    found = [[] for _ in others]
    before = bare.ask(what)
    for number in range(slices):
        order = range(len(others)) if number % 2 else reversed(range(len(others)))
        for index in order:
            figure = others[index].ask(what)
            after = bare.ask(what)
            found[index].append(figure / ((before + after) / 2))
            before = after
    return [statistics.median(values) for values in found]


def difference(bare, traced, slices):
    """The median over the slices of traced less bare, in ABBA order."""
    found = []
    for _ in range(slices):
        first, second, third, fourth = bare.ask(), traced.ask(), traced.ask(), bare.ask()
        found.append((second + third - first - fourth) / 2)
    return statistics.median(found)
