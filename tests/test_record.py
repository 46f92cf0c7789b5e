"""`tare record` and `tare lib`."""

import os
import re
import shutil
import signal
import subprocess
import time

import pytest
from conftest import LIBTARE, PROG, TARE, clean_environment

END = PROG / "process_end.py"
CHILDREN = PROG / "process_children.py"


def traces_said(done):
    return re.findall(r"^tare: trace: (.+) \(\d.*B\)$", done.stderr, re.MULTILINE)


def test_lib():
    done = subprocess.run([TARE, "lib"], capture_output=True, text=True)
    assert (done.returncode, done.stdout, done.stderr) == (0, f"{LIBTARE}\n", "")


def test_installed(tmp_path, python):
    """bin/tare and lib/tare/libtare.so."""
    for source, target in ((TARE, "bin"), (LIBTARE, "lib/tare")):
        (tmp_path / target).mkdir(parents=True)
        shutil.copy(source, tmp_path / target)
    done = subprocess.run(
        [tmp_path / "bin/tare", "lib"], capture_output=True, text=True
    )
    assert done.stdout == f"{tmp_path}/lib/tare/libtare.so\n"
    (tmp_path / "lib/tare/libtare.so").unlink()
    done = subprocess.run(
        [tmp_path / "bin/tare", "lib"], capture_output=True, text=True
    )
    assert (done.returncode, done.stdout) == (2, "")
    assert len(done.stderr.splitlines()) == 1


def test_says_where_the_trace_is(record, dump, python, tmp_path):
    done = record("--", python, END, "exit3")
    assert (done.returncode, done.stdout.splitlines()[0]) == (3, "ends by exit3")
    (trace,) = traces_said(done)
    assert os.path.dirname(trace) == str(tmp_path)
    assert dump(trace).events("FRAME")
    assert os.stat(trace).st_mode & 0o777 == 0o600


@pytest.mark.parametrize("how", ["SIGTERM", "SIGKILL", "abort", "crash", "SIGINT"])
def test_exit_status_of_signals(record, python, how):
    number = {"abort": signal.SIGABRT, "crash": signal.SIGSEGV}.get(how) or getattr(
        signal, how
    )
    done = record(python, END, how)
    assert done.returncode == 128 + number
    assert len(traces_said(done)) == 1


def test_output_and_options(record, python, tmp_path):
    done = record(
        "-o",
        "new/%p.tare",
        "--children=all",
        "--max-bytes",
        "1M",
        python,
        CHILDREN,
        "fork",
    )
    assert done.returncode == 0
    assert len(traces_said(done)) == 2
    assert sorted(traces_said(done)) == sorted(map(str, tmp_path.glob("new/*.tare")))


def test_output_in_a_folder_with_a_percent_sign(tmp_path, python):
    folder = tmp_path / "100%p"
    folder.mkdir()
    command = [TARE, "record", "-o", "x.tare", python, END, "normal"]
    subprocess.run(command, cwd=folder, env=clean_environment({}), check=True)
    assert (folder / "x.tare").exists()


def test_output_where_children_are_elsewhere(record, python, tmp_path):
    code = f"cd / && exec {python} {END} normal"
    done = record("-o", "x.tare", "sh", "-c", code)
    assert traces_said(done) == [f"{tmp_path}/x.tare"]


def test_output_by_environment(record, python, tmp_path):
    done = record(python, END, "normal", env={"TARE_OUTPUT": "y.tare"})
    assert traces_said(done) == [f"{tmp_path}/y.tare"]


def test_many_traces(record, python, tmp_path):
    done = record(
        "-o", "many/", "--children", "all", python, CHILDREN, "fork_while_busy"
    )
    assert len(traces_said(done)) == 8
    assert "tare: and 13 traces more, 21 in all\n" in done.stderr
    assert len(list(tmp_path.glob("many/*"))) == 21


def test_preload_of_others_is_kept(record, tmp_path):
    source = tmp_path / "other.c"
    source.write_text("int other = 1;\n")
    subprocess.run(["gcc", "-shared", "-o", tmp_path / "other.so", source], check=True)
    done = record(
        "sh", "-c", "echo $LD_PRELOAD", env={"LD_PRELOAD": tmp_path / "other.so"}
    )
    assert done.stdout == f"{LIBTARE}:{tmp_path}/other.so\n"


def test_trace_that_ends_early(record, python):
    done = record("--max-bytes", "500K", python, PROG / "process_busy.py", "1500000")
    assert re.search(
        r"; it ends early: TARE_MAX_BYTES was reached$", done.stderr, re.MULTILINE
    )


# -------------------------------------------------------------------------------- wrong usage


@pytest.mark.parametrize(
    "arguments",
    [
        [],
        ["--"],
        ["--layers", "nonsense", "true"],
        ["--max-bytes=0", "true"],
        ["--delay=-1", "true"],
        ["--duration=1s", "true"],
        ["--children=some", "true"],
        ["--output=", "true"],
        ["--journal=x", "true"],
        ["--no-such-option", "true"],
        ["-o"],
    ],
)
def test_wrong_usage(record, arguments):
    done = record(*arguments)
    assert (done.returncode, done.stdout) == (2, "")
    assert len(done.stderr.splitlines()) == 1 and done.stderr.startswith("tare: ")


def test_command_that_cannot_be_run(record, tmp_path):
    (tmp_path / "not-executable").write_text("")
    for command, status in (
        ("no-such-command", 127),
        ("./not-executable", 126),
        ("/", 126),
    ):
        done = record(command, "-x")
        assert done.returncode == status
        assert len(done.stderr.splitlines()) == 1


def test_help_names_each_knob():
    done = subprocess.run([TARE, "record", "--help"], capture_output=True, text=True)
    assert done.returncode == 0
    for option in (
        "-o, --output",
        "--layers",
        "--max-bytes",
        "--delay",
        "--children",
        "--verbose",
    ):
        assert option in done.stdout
    assert "journal" not in done.stdout


# -------------------------------------------------------------------------------- signals


@pytest.mark.parametrize(
    "number", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGUSR1]
)
def test_signals_are_passed_on(tmp_path, python, number):
    """To the program, which decides; we wait for it, and say where its trace is."""
    code = (
        "import signal, sys\n"
        f"signal.signal({int(number)}, lambda *_: sys.exit(9))\n"
        "print('ready', flush=True)\n"
        "while True: signal.pause()\n"
    )
    process = subprocess.Popen(
        [TARE, "record", "-o", "x.tare", python, "-c", code],
        cwd=tmp_path,
        env=clean_environment({}),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert process.stdout.readline() == "ready\n"
    process.send_signal(number)
    _, stderr = process.communicate(timeout=60)
    assert process.returncode == 9
    assert f"{tmp_path}/x.tare" in stderr


def test_interrupt_of_the_terminal_arrives_once(tmp_path, python):
    """Ctrl-C goes to the program and to us: it must not be passed on again."""
    code = (
        "import signal, time\n"
        "count = 0\n"
        "def handler(*_):\n"
        "    global count\n"
        "    count += 1\n"
        "signal.signal(signal.SIGINT, handler)\n"
        "print('ready', flush=True)\n"
        "end = time.monotonic() + 1\n"
        "while time.monotonic() < end: time.sleep(0.05)\n"
        "print('interrupts:', count)\n"
    )
    pid, terminal = os.forkpty()
    if pid == 0:
        os.chdir(tmp_path)
        os.execve(TARE, [TARE, "record", python, "-c", code], clean_environment({}))
    output = b""
    while b"ready" not in output:
        output += os.read(terminal, 1000)
    time.sleep(0.2)
    os.write(terminal, b"\x03")
    try:
        while part := os.read(terminal, 1000):
            output += part
    except OSError:  # the end, on a terminal
        pass
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0
    assert b"interrupts: 1" in output
