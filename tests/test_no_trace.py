"""`tare record` says why there is no trace: each reason in words of its own, with what to do."""

import os
import re
import shutil
import struct
import subprocess
import tempfile
import time
from pathlib import Path

import pytest
from conftest import LIBTARE, PROG, SIM, TARE, clean_environment

END = PROG / "process_end.py"
# Long enough to be seen from outside: LD_PRELOAD does not reach it.
SLEEPS = "import time; print('ran', flush=True); time.sleep(2)"


@pytest.fixture
def build(tmp_path):
    def build(compiler, text="int main(void) { return 5; }\n"):
        if not shutil.which(compiler[0]):
            pytest.skip(f"no {compiler[0]}")
        source = tmp_path / "program.c"
        source.write_text(text)
        if subprocess.run(
            [*compiler, source, "-o", tmp_path / "program"], capture_output=True
        ).returncode:
            pytest.skip(f"{' '.join(compiler)} does not work here")
        return tmp_path / "program"

    return build


def reason(done):
    (line,) = [line for line in done.stderr.splitlines() if line.startswith("tare: ")]
    assert line.startswith("tare: no trace")
    return line


# -------------------------------------------------------------------------------- the program's file


@pytest.mark.parametrize(
    "compiler, said",
    [(["gcc", "-static"], "is linked statically"), (["musl-gcc"], "is built for musl")],
    ids=["static", "musl"],
)
def test_program_of_another_kind(record, build, tmp_path, compiler, said):
    program = build(compiler)
    done = record("./program")
    assert done.returncode == 5
    assert said in reason(done)
    # The interpreter of a script.
    script = tmp_path / "script"
    script.write_text(f"#!{program} x\n")
    script.chmod(0o755)
    assert f"{program} {said}" in reason(record("./script"))
    script.write_text("#!/usr/bin/env program\n")
    path = f"{tmp_path}:{os.environ['PATH']}"
    assert f"{program} {said}" in reason(record("./script", env={"PATH": path}))


def test_32_bit_program(record, build):
    build(
        ["gcc", "-m32", "-nostdlib", "-static"],
        'void _start(void) { __asm__("int $0x80" ::"a"(1), "b"(5)); }\n',
    )
    done = record("./program")
    assert done.returncode == 5
    assert "is a 32-bit program" in reason(done)


def test_program_for_another_processor(record, tmp_path):
    """The header of a copy says so: the kernel refuses it, and no emulator takes it."""
    program = tmp_path / "program"
    data = bytearray(Path("/bin/true").read_bytes())
    struct.pack_into("<H", data, 18, 243)  # e_machine: RISC-V
    program.write_bytes(data)
    program.chmod(0o755)
    assert "is a program for another kind of processor" in reason(record("./program"))


def test_privileges(record, tmp_path):
    shutil.copy("/bin/true", tmp_path / "x")
    (tmp_path / "x").chmod(0o4755)
    said = reason(record("./x"))
    assert "setuid" in said and "'tare record' behind it" in said


# -------------------------------------------------------------------------------- Python is not reached


@pytest.mark.parametrize(
    "command, launcher",
    [
        (["env", "-u", "LD_PRELOAD"], "env"),
        (["env", "-i"], "env"),
        (["sh", "-c", 'unset LD_PRELOAD; exec "$@"', "sh"], None),
        (["sh", "-c", 'unset LD_PRELOAD; "$@"; true', "sh"], None),
        (["sh", "-c", 'env -u LD_PRELOAD "$@" & wait', "sh"], "env"),
    ],
)
def test_taken_out_of_the_environment(record, python, command, launcher):
    done = record(*command, python, "-c", SLEEPS)
    assert (done.returncode, done.stdout) == (0, "ran\n")
    name = os.path.basename(os.path.realpath(python))
    launcher = launcher or os.path.basename(os.path.realpath(shutil.which("sh")))
    said = reason(done)
    assert re.search(
        rf"{re.escape(name)} \(pid \d+\) ran without LD_PRELOAD: {launcher} took it out",
        said,
    )
    assert "leave it there, or put 'tare record' directly before" in said


def test_by_python(record, python):
    """Of a launcher in Python there is a trace; what it starts without LD_PRELOAD is its own affair."""
    code = f"import subprocess, sys; subprocess.run([sys.executable, '-c', {SLEEPS!r}], env={{}})"
    done = record(python, "-c", code)
    assert len(re.findall("^tare: trace: ", done.stderr, re.MULTILINE)) == 1


def test_as_another_user():
    """As sudo does it: with privileges the dynamic linker takes it out, and /proc tells nothing."""
    if os.getuid() != 0:
        pytest.skip("wants root")
    with tempfile.TemporaryDirectory() as folder:
        os.chmod(folder, 0o777)
        for path in (TARE, LIBTARE, shutil.which("env")):
            shutil.copy(path, folder)
        os.chmod(f"{folder}/env", 0o4755)
        done = subprocess.run(
            [
                f"{folder}/tare",
                "record",
                "sh",
                "-c",
                './env "$@"; true',
                "sh",
                "/usr/bin/python3",
                "-c",
                SLEEPS,
            ],
            cwd=folder,
            env={"PATH": os.environ["PATH"], "TARE_CALIBRATION": "none"},
            capture_output=True,
            text=True,
            user="nobody",
        )
    if "ran" not in done.stdout:
        pytest.skip("that user may not run it")
    if "ran without" in done.stderr or "trace: /" in done.stderr:
        pytest.skip("setuid does not count in this folder")
    assert "ran as another user" in reason(done) and "sudo tare record" in reason(done)


def test_library_that_cannot_be_loaded(tmp_path):
    shutil.copy(TARE, tmp_path)
    (tmp_path / "libtare.so").write_text("no library")
    done = subprocess.run(
        [tmp_path / "tare", "record", "true"],
        env=clean_environment({}),
        capture_output=True,
        text=True,
    )
    assert "the dynamic linker did not load libtare.so into true" in reason(done)


# -------------------------------------------------------------------------------- nothing to record


def test_not_python(record):
    done = record("sh", "-c", "exit 7")
    assert done.returncode == 7
    said = reason(done)
    assert (
        "no Python" in said
        and os.path.basename(os.path.realpath(shutil.which("sh"))) in said
    )


def test_python_that_runs_nothing(record, python):
    assert "ended before it ran any Python" in reason(record(python, "--version"))


def test_python_that_is_too_old(record, python):
    root = Path(os.environ.get("PYENV_ROOT") or Path.home() / ".pyenv")
    old = sorted(root.glob("versions/3.[3-8].*/bin/python"))
    if not old:
        pytest.skip("no Python before 3.9")
    for path in old:
        done = record(path, "-c", "print('ran')")
        version = path.parent.parent.name
        said = reason(done)
        assert done.stdout == "ran\n"
        assert f"CPython {version}: " in said and "CPython 3.9 to 3.14" in said


@pytest.mark.parametrize(
    "version, flag", [("3.14.0", "-DFREE_THREADED=1"), ("3.99.0", "-DFREE_THREADED=0")]
)
def test_python_that_is_not_known(record, program, version, flag):
    """CUDA calls are recorded; of functions it is said why not."""
    runtime = SIM / "lib" / "libcudart.so.13"
    if not runtime.exists():
        pytest.skip("the simulated CUDA device is not built (make sim)")
    flags = [
        f'-DVERSION="{version}"',
        "-rdynamic",
        str(runtime),
        f"-Wl,-rpath-link,{SIM}/lib",
        flag,
    ]
    done = record(
        program("frames_unknown.c", *flags), env={"LD_LIBRARY_PATH": SIM / "lib"}
    )
    trace, why = done.stderr.splitlines()
    assert trace.startswith("tare: trace: ")
    assert f"no Python functions in it: CPython {version}: " in why
    assert ("free-threaded" if flag.endswith("1") else "not known") in why


def test_layers_none(record, python):
    assert "LAYERS is none" in reason(record("--layers", "none", python, END, "normal"))


def test_layers_without_frames(record, python):
    assert "did nothing of what was to be recorded" in reason(
        record("--layers", "ops", python, END, "normal")
    )


def test_delay_that_is_too_long(record, python):
    assert "before TARE_DELAY (1000 s) was over" in reason(
        record("--delay", "1000", python, END, "normal")
    )


def test_command_that_ends_before_what_it_started(record, build, tmp_path):
    build(
        ["gcc"],
        '#include <stdio.h>\n#include <unistd.h>\nint main(void) { fclose(fopen("started", "w"));\n'
        'for (int i = 0; i < 600 && access("end", F_OK); i++) usleep(100000); remove("started"); }\n',
    )
    done = record(
        "sh",
        "-c",
        "./program >/dev/null 2>&1 & while [ ! -e started ]; do sleep 0.05; done",
    )
    (tmp_path / "end").touch()
    assert re.search(
        r"no trace yet: program \(pid \d+\) still runs, and sh, which started it, has ended",
        reason(done),
    )
    while (tmp_path / "started").exists():
        time.sleep(0.02)


# -------------------------------------------------------------------------------- the trace's file


@pytest.mark.parametrize(
    "output, said",
    [
        ("no/such/folder/", "no such folder; make it"),
        ("/proc/x.tare", "no such folder"),
        ("/dev/null/x.tare", "a part of its path is a file"),
        ("x" * 300, "too long"),
    ],
)
def test_folder(record, python, output, said):
    done = record("-o", output, python, END, "normal")
    assert (done.returncode, done.stdout.splitlines()[0]) == (0, "ends by normal")
    assert "no trace of 1 process: cannot create " in reason(done) and said in reason(
        done
    )


def test_folder_that_is_not_writable(record, python, tmp_path):
    (tmp_path / "closed").mkdir(mode=0o555)
    if os.getuid() == 0:
        pytest.skip("for root all are")
    done = record("-o", "closed/", python, END, "normal")
    assert "not writable for this user; choose another folder with -o" in reason(done)


def mounted(tmp_path, options):
    folder = tmp_path / "mounted"
    folder.mkdir()
    command = ["mount", "-t", "tmpfs", "-o", options, "tmpfs", folder]
    if subprocess.run(command, capture_output=True).returncode:
        pytest.skip("nothing can be mounted")
    return folder


@pytest.mark.parametrize(
    "options, said",
    [("size=4k", "no room is left there"), ("ro", "read-only; choose another folder")],
    ids=["full", "read-only"],
)
def test_file_system(record, python, tmp_path, options, said):
    folder = mounted(tmp_path, options)
    try:
        done = record("-o", f"{folder}/", python, END, "normal")
        assert (done.returncode, done.stdout.splitlines()[0]) == (0, "ends by normal")
        assert said in reason(done)
    finally:
        subprocess.run(["umount", folder], check=True)


def test_full_while_it_runs(record, python, tmp_path):
    folder = mounted(tmp_path, "size=400k")
    try:
        done = record("-o", f"{folder}/", python, PROG / "process_busy.py", "1500000")
        assert done.stdout == "1500000\n"
        assert "it ends early: a write failed: No space left on device" in done.stderr
    finally:
        subprocess.run(["umount", folder], check=True)


def test_limit_of_files(record, python):
    done = record("sh", "-c", f"ulimit -f 20; exec {python} {END} normal")
    assert (done.returncode, done.stdout.splitlines()[0]) == (0, "ends by normal")
    assert "files may not grow that large (ulimit -f)" in reason(done)


def test_no_limit_of_files_kills(record, python):
    """Nor does the line that says so."""
    done = record("sh", "-c", f"ulimit -f 0; exec {python} {END} normal")
    assert (done.returncode, done.stdout.splitlines()[0]) == (0, "ends by normal")


def test_no_name_left(record, python, tmp_path):
    for n in range(1, 1001):
        (tmp_path / (f"x-{n}.tare" if n > 1 else "x.tare")).touch()
    assert "are taken; remove old traces" in reason(
        record("-o", "x.tare", python, END, "normal")
    )
