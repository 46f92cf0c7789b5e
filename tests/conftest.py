"""
Shared by all end-to-end tests. Use what is here as fixtures; the names in capitals by
`from conftest import NAME`.

    run_bare_and_traced(cmd, env=…, cwd=…, stdin=…, timeout=…, returncode=…, trace_env=…, mask=…, row=…)
        Runs `cmd` twice, without and with libtare.so, in two fresh folders (or in `cwd`, if given), and
        fails unless stdout, stderr, exit status (negative: the signal, as in subprocess) and the files
        written are equal. `env` is for both runs, `trace_env` for the traced one (TARE_… variables).
        `returncode`: what both must end with. `row`: the row of docs/fidelity.md that this is, or several: see
        tests/matrix.py. `mask`: takes a text, returns it without what differs from
        run to run; then files are not compared. Returns the traced Run, with `.bare`.
    run_traced(cmd, …)
        The traced run alone; compares nothing.
    Run: .returncode .stdout .stderr (text) .traces (paths, oldest first) .trace (the only one; fails if
        there is not exactly one) .folder (where it ran)

    dump(trace)        → Dump of one trace: .items: one dict for each line of `tare dump --format json`;
                         .events("FRAME", …) .records("CODE", …): those of the names given, all without
    count_events(trace) → {"threads": {1: {"FRAME": 7, …}}, "lost": 0, …}, for traces too large to dump:
                         see tests/prog/count_events.c. One more argument: of frames those of that function alone
    program("x.c")     → path of tests/prog/x.c compiled (pass more flags: program("x.c", "-ldl")); the
                         path of tests/prog/x.py as it is
    cudart(major)      → flags for program() that link it with the simulated libcudart.so.<major>
    python             → the Python that runs the tests (torch is installed there)
    any_python         → parametrised: each interpreter of this machine from 3.9 on
    any_tools          → the same, each with tests/requirements-tools.txt installed
    sim(cmd, …)        → `cmd` as a command that runs on the simulated CUDA device; more arguments are
                         options of tests/sim/run. Skips the test where it is not built.

    BUILD (from TARE_BUILD, default build/), TARE (the command), LIBTARE, SIM, PROG, PYTHONS.

A program that is run bare and traced must not print what differs from run to run (pids, addresses).
"""

import dataclasses
import difflib
import functools
import json
import os
import shutil
import signal
import struct
import subprocess
import sys
import tempfile
from pathlib import Path

import matrix
import pytest

# Started in the background, or by nohup, these are ignored, and so they would be by every program that is run here.
for number in (signal.SIGHUP, signal.SIGINT, signal.SIGQUIT):
    if signal.getsignal(number) is signal.SIG_IGN:
        signal.signal(number, signal.SIG_DFL)

ROOT = Path(__file__).resolve().parent.parent
BUILD = Path(os.environ.get("TARE_BUILD") or ROOT / "build").resolve()
TARE = BUILD / "tare"
LIBTARE = BUILD / "libtare.so"
SIM = Path(os.environ.get("TARE_SIM") or BUILD / "sim").resolve()
PROG = ROOT / "tests" / "prog"

# Traces up to that size are looked at after each test: TARE_LEDGER_BYTES.
LEDGER_BYTES = int(os.environ.get("TARE_LEDGER_BYTES") or 4 << 20)


def find_pythons():
    """Interpreters from 3.9 on: {name: path}. A name is the version; -system: not of pyenv."""
    root = Path(os.environ.get("PYENV_ROOT") or Path.home() / ".pyenv")
    found = {}
    candidates = sorted(root.glob("versions/*/bin/python3")) + [Path("/usr/bin/python3")]
    for path in candidates:
        probe = "import sys; print('%d.%d.%d' % sys.version_info[:3])"
        try:
            done = subprocess.run([path, "-I", "-S", "-c", probe], capture_output=True, text=True)
        except OSError:
            continue
        version = done.stdout.strip()
        if done.returncode or tuple(map(int, version.split("."))) < (3, 9, 0):
            continue
        found[version if path.is_relative_to(root) else f"{version}-system"] = str(path)
    return found


PYTHONS = find_pythons()


def pytest_addoption(parser):
    parser.addoption("--matrix", help="keep there what was run of docs/fidelity.md")


def pytest_configure(config):
    if not hasattr(config, "workerinput"):
        config.pluginmanager.register(matrix.Recorder(config.getoption("--matrix")))


def clean_environment(env):
    """This process's environment without what would disturb a test, and `env` on top."""
    base = {k: v for k, v in os.environ.items() if not k.startswith("TARE_") and k != "LD_PRELOAD"}
    base["PYTHONDONTWRITEBYTECODE"] = "1"
    # What a trace holds must not depend on what this machine keeps; and measuring it takes long.
    base["TARE_CALIBRATION"] = "none"
    return {**base, **{k: str(v) for k, v in (env or {}).items()}}


def files_below(folder):
    """{relative path: contents} of all files."""
    return {
        str(path.relative_to(folder)): path.read_bytes()
        for path in sorted(folder.rglob("*"))
        if path.is_file() and not path.is_symlink()
    }


def start_of(trace):
    """start_realtime_ns of the header."""
    return struct.unpack_from("<Q", trace.read_bytes(), 40)[0]


@dataclasses.dataclass
class Run:
    returncode: int
    stdout: str
    stderr: str
    folder: Path
    trace_folder: Path = None
    bare: "Run" = None

    @property
    def traces(self):
        return sorted(self.trace_folder.glob("*.tare"), key=start_of)

    @property
    def trace(self):
        assert len(self.traces) == 1, f"{len(self.traces)} traces in {self.trace_folder}"
        return self.traces[0]


def run(cmd, folder, env, stdin, timeout, **more):
    done = subprocess.run(
        [str(part) for part in cmd],
        cwd=folder,
        env=env,
        input=stdin if stdin is not None else "",
        capture_output=True,
        text=True,
        errors="replace",
        timeout=timeout,
        **more,
    )
    return Run(done.returncode, done.stdout, done.stderr, Path(folder))


def check_lines(what, ledger, wall_ns):
    """
    The lines of a ledger are none of them negative, and add up to the wall time, which is that of the
    events' own times and the process's: what they are compared with must not be made of them.
    """
    lines = {k: v for k, v in ledger.items() if k.endswith("_ns") and k != "wall_ns" and v is not None}
    assert not lines or min(lines.values()) >= 0, (what, lines)
    assert abs(sum(lines.values()) - wall_ns) <= 0.005 * wall_ns + 100, (what, lines, wall_ns)


def near(left, right):
    return abs(left - right) <= 0.005 * right + 100


def check_loop(loop):
    """The process's lines in all passes, and when the loop itself began and ended."""
    if not loop["ledger"]:
        return
    what = f"{loop['file']}:{loop['line']}"
    check_lines(what, loop["ledger"], loop["total_ns"] / loop["passes"])


def check_thread(thread, times, end_ns):
    """From its first event to its last; what is open goes on to the end, and others may be waited for."""
    wall = sum(ns for line, ns in thread["ledger"].items() if line != "wall_ns" and ns is not None)
    least, most = times["last_ns"] - times["first_ns"], end_ns - times["first_ns"]
    assert near(wall, most) or (not times["open"] and least * 0.995 - 100 <= wall <= most), (thread, times, end_ns)
    check_lines(thread["name"], thread["ledger"], wall)


def check_ledgers(trace, count_events):
    """What holds for every trace: of the process, its parts, passes of its loops, its threads."""
    # Large ones take a while, and tests make some that cannot be read.
    if trace.stat().st_size > LEDGER_BYTES:
        return
    # Its process may still run, as a debugger's does: all is told of one moment.
    with tempfile.TemporaryDirectory() as folder:
        check_ledgers_of(Path(shutil.copy(trace, folder)), count_events)


def check_ledgers_of(trace, count_events):
    command = [TARE, "report", "--format", "json", trace]
    done = subprocess.run(command, capture_output=True, env=clean_environment({}), timeout=60)
    if done.returncode == 2:
        return
    assert done.returncode == 0, (trace, done.stderr)
    found = json.loads(done.stdout)
    counted = count_events(trace)
    wall = counted["recorded_ns"]
    whole = not counted["stopped"] and not found["trace"]["truncated"]
    if whole and counted["lived_ns"] is not None:
        wall = max(counted["lived_ns"], wall)
    assert near(found["trace"]["wall_ns"], wall), (found["trace"]["wall_ns"], wall)
    check_lines("process", found["ledger"], wall)
    parts = [found[part] for part in ("startup", "program", "exit") if found[part]]
    for part in parts:
        check_lines("part", part, part["wall_ns"])
    assert near(sum(part["wall_ns"] for part in parts), wall)
    for loop in found["loops"]:
        check_loop(loop)
    for thread in found["thread_ledgers"]:
        check_thread(thread, counted["times"][str(thread["thread"])], wall)


@pytest.fixture
def run_traced(tmp_path, count_events):
    count = 0

    def run_traced(cmd, env=None, cwd=None, stdin=None, timeout=120, trace_env=None, **more):
        nonlocal count
        count += 1
        folder = cwd or tmp_path / f"traced-{count}"
        traces = tmp_path / f"traces-{count}"
        for path in (Path(folder), traces):
            path.mkdir(exist_ok=True)
        own = {"LD_PRELOAD": LIBTARE, "TARE_OUTPUT": f"{traces}/", **(trace_env or {})}
        result = run(cmd, folder, clean_environment({**(env or {}), **own}), stdin, timeout, **more)
        result.trace_folder = traces
        return result

    assert LIBTARE.exists(), f"{LIBTARE} is not built"
    yield run_traced
    for trace in tmp_path.glob("traces-*/*.tare"):
        check_ledgers(trace, count_events)


@pytest.fixture
def belongs_to(request):
    """belongs_to(row): the test is one of that row of docs/fidelity.md, on the interpreter that it has."""

    def belongs_to(name):
        path = request.node.callspec.params.get("any_python") if hasattr(request.node, "callspec") else None
        own = [python for python in PYTHONS.values() if python.startswith(f"{sys.base_prefix}/bin/")]
        names = {path: name for name, path in PYTHONS.items()}
        column = names[path or own[0]]
        if matrix.ROWS[name].where == matrix.NONE:
            column = matrix.WITHOUT_PYTHON
        request.node.user_properties.append(("matrix", (name, column)))

    return belongs_to


@pytest.fixture
def run_bare_and_traced(tmp_path, run_traced, belongs_to):
    count = 0

    def run_both(
        cmd,
        env=None,
        cwd=None,
        stdin=None,
        timeout=120,
        returncode=None,
        trace_env=None,
        mask=None,
        row=(),
        **more,
    ):
        nonlocal count
        count += 1
        for name in [row] if isinstance(row, str) else row:
            belongs_to(name)
        folder = Path(cwd or tmp_path / f"bare-{count}")
        folder.mkdir(exist_ok=True)
        bare = run(cmd, folder, clean_environment(env), stdin, timeout, **more)
        traced = run_traced(cmd, env, cwd, stdin, timeout, trace_env, **more)
        traced.bare = bare
        hide = mask or str
        for what in ("stdout", "stderr"):
            texts = [hide(getattr(one, what)).splitlines(keepends=True) for one in (bare, traced)]
            diff = "".join(difflib.unified_diff(*texts, f"{what}, bare", f"{what}, traced", n=1))
            assert not diff, diff
        assert traced.returncode == bare.returncode
        if returncode is not None:
            assert bare.returncode == returncode, bare.stderr
        if cwd is None and not mask:
            assert files_below(traced.folder) == files_below(bare.folder)
        return traced

    return run_both


class Dump:
    def __init__(self, items):
        self.items = items

    def events(self, *names):
        return self._select("event", names)

    def records(self, *names):
        return self._select("record", names)

    def _select(self, kind, names):
        return [item for item in self.items if kind in item and (not names or item[kind] in names)]


@pytest.fixture
def record(tmp_path):
    """`tare record` with these arguments, in the test's folder."""

    def record(*arguments, env=None, **more):
        return subprocess.run(
            [str(part) for part in (TARE, "record", *arguments)],
            cwd=tmp_path,
            env=clean_environment(env),
            capture_output=True,
            text=True,
            timeout=60,
            **more,
        )

    return record


@pytest.fixture(scope="session")
def dump():
    def dump(trace):
        done = subprocess.run(
            [TARE, "dump", "--format", "json", trace], capture_output=True, text=True
        )
        assert done.returncode == 0, done.stderr
        return Dump([json.loads(line) for line in done.stdout.splitlines()])

    return dump


@pytest.fixture(scope="session")
def program(tmp_path_factory):
    folder = tmp_path_factory.mktemp("prog")

    @functools.cache
    def program(name, *flags):
        source = PROG / name
        if source.suffix != ".c":
            return source
        out = folder / f"{source.stem}-{abs(hash(flags))}"
        command = [
            "gcc",
            "-std=gnu17",
            "-D_GNU_SOURCE",
            "-O1",
            "-g",
            "-Wall",
            "-Wextra",
            "-I",
            ROOT,
        ]
        subprocess.run([*command, source, "-o", out, *flags, "-ldl", "-lpthread"], check=True)
        return out

    return program


@pytest.fixture(scope="session")
def count_events(program):
    def count_events(trace, *function):
        counter = program("count_events.c", BUILD / "obj" / "libtraces.a", "-l:libzstd.a", "-lm")
        done = subprocess.run([counter, trace, *function], capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
        counts = json.loads(done.stdout)
        counts["threads"] = {int(thread): events for thread, events in counts["threads"].items()}
        return counts

    return count_events


def assert_readable(count_events, traces):
    """Nothing of them is lost, damaged, or missing."""
    for trace in traces:
        counts = count_events(trace)
        assert not any(counts[what] for what in ("lost", "damaged", "missing", "truncated")), counts


def is_whole(counts):
    """What was lost is said."""
    gaps = counts["missing"] or counts["truncated"]
    return not counts["damaged"] and (not gaps or counts["lost"])


@pytest.fixture(scope="session")
def cudart():
    def cudart(major=13):
        folder = SIM / "lib"
        if not (folder / f"libcudart.so.{major}").exists():
            pytest.skip("the simulated CUDA runtime is not built (make sim)")
        allow = "-Wl,--allow-shlib-undefined"
        return [f"-L{folder}", f"-l:libcudart.so.{major}", f"-Wl,-rpath,{folder}", allow]

    return cudart


@pytest.fixture(scope="session")
def fake_runtime(tmp_path_factory):
    """A CUDA runtime that does nothing, and takes no lock: signal handlers may call it."""
    out = tmp_path_factory.mktemp("fake") / "libcudart.so.13"
    script = out.parent / "version.map"
    script.write_text("libcudart.so.13 { global: *; };\n")
    command = ["gcc", "-std=gnu17", "-D_GNU_SOURCE", "-O1", "-w", "-shared", "-fPIC", "-I", ROOT]
    command += ["-DCUDART_MAJOR=13", "-DFAKE_RESULT=0", f"-Wl,--version-script={script}"]
    command += [f"-Wl,-soname,{out.name}", PROG / "cuda_fake.c", "-o", out]
    subprocess.run(command, check=True)
    return out


@pytest.fixture(scope="session")
def calls_program(program, fake_runtime):
    """tests/prog/fidelity_calls.c and the plugin that it opens."""
    link = str(fake_runtime), f"-Wl,-rpath,{fake_runtime.parent}"
    plugin = program("cuda_plugin.c", "-shared", "-fPIC", "-w", "-DCUDART_MAJOR=13", *link)
    main = program("fidelity_calls.c", *link)
    return lambda case: [main, case, plugin]


@pytest.fixture(scope="session")
def failing(program):
    """A library that makes the system calls of libtare.so's own fail, or holds them."""
    return program("fail_calls.c", "-shared", "-fPIC")


@pytest.fixture(scope="session")
def python():
    return sys.executable


@pytest.fixture(params=PYTHONS.values(), ids=PYTHONS.keys())
def any_python(request):
    return request.param


@functools.cache
def tools_of(python):
    command = [ROOT / "scripts" / "venv.sh", "tests/requirements-tools.txt"]
    env = {**os.environ, "TARE_PYTHON": python}
    return subprocess.run(command, env=env, capture_output=True, text=True, check=True).stdout.strip()


@pytest.fixture
def any_tools(any_python):
    return tools_of(any_python)


@pytest.fixture(scope="session")
def sim():
    def sim(cmd, *options):
        if not SIM.exists():
            pytest.skip("the simulated CUDA device is not built (make sim)")
        return [ROOT / "tests" / "sim" / "run", "--build", BUILD, *options, "--", *cmd]

    return sim


@pytest.fixture(scope="session")
def trace_on_device(sim, python):
    """trace_on_device(folder, *arguments): Python traced into the folder; where one run serves many tests."""

    def trace_on_device(folder, *arguments, env=None):
        own = {"LD_PRELOAD": LIBTARE, "TARE_OUTPUT": f"{folder}/", **(env or {})}
        command = [str(part) for part in sim([python, *arguments])]
        subprocess.run(command, env=clean_environment(own), check=True)
        return folder

    return trace_on_device
