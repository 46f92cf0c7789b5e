"""C programs, other preloaded libraries, what the dynamic linker does: bare and traced."""

import glob
import os
import shutil
import subprocess

import pytest
from conftest import LIBTARE, PROG, assert_readable

PYTHON = PROG / "fidelity_python.py"


@pytest.mark.parametrize(
    "case, status, row",
    [
        ("blocks", 3, ()),
        ("signals", 0, "a handler at 1 kHz that makes CUDA calls"),
        ("jumps", 0, "a handler that jumps out of whatever it finds"),
        ("exits", 5, "exit while 8 threads make calls"),
        ("exit_handlers", 6, "calls and a fork in exit handlers"),
        ("main_ends", 0, "main ends before its threads (pthread_exit)"),
        ("stack_overflow", 9, "stack overflow, with a handler"),
        ("closes", 0, "dlclose, again and again"),
        ("deepbind", 0, "dlopen with RTLD_DEEPBIND"),
    ],
)
def test_calls(run_bare_and_traced, count_events, calls_program, case, status, row):
    run = run_bare_and_traced(calls_program(case), returncode=status, row=row)
    assert_readable(count_events, run.traces)
    assert len(run.traces) == 1 + (case in ("blocks", "exit_handlers"))


def find_library(name):
    return next(iter(sorted(glob.glob(f"/usr/lib/*-linux-gnu/lib{name}.so.?"))), None)


@pytest.mark.parametrize("order", ["tare first", "tare last"])
@pytest.mark.parametrize("name", ["jemalloc", "mimalloc", "asan"])
def test_other_preloads(run_bare_and_traced, count_events, calls_program, python, name, order):
    library = find_library(name)
    if not library or (name == "asan" and order == "tare first"):
        pytest.skip(f"no lib{name} in /usr/lib" if not library else "ASan has to be first")
    preload = f"{LIBTARE}:{library}" if order == "tare first" else f"{library}:{LIBTARE}"
    env = {"LD_PRELOAD": library, "ASAN_OPTIONS": "detect_leaks=0"}
    for command in ([python, PYTHON, "generators", "multiprocess", "profilers"], calls_program("blocks")):
        row = "ASan preloaded" if name == "asan" else f"{name} preloaded"
        run = run_bare_and_traced(command, env=env, trace_env={"LD_PRELOAD": preload}, row=row)
        assert run.returncode in (0, 3)
        assert run.traces
        assert_readable(count_events, run.traces)


def test_program_with_asan(run_bare_and_traced, count_events, program, fake_runtime):
    """Its own runtime has to be the first library, also before ours."""
    flags = "-fsanitize=address", str(fake_runtime), f"-Wl,-rpath,{fake_runtime.parent}"
    command = [program("fidelity_calls.c", *flags), "blocks"]
    runtime = subprocess.run(["gcc", "-print-file-name=libasan.so"], capture_output=True, text=True)
    library = os.path.realpath(runtime.stdout.strip())
    run = run_bare_and_traced(
        command,
        env={"LD_PRELOAD": library},
        trace_env={"LD_PRELOAD": f"{library}:{LIBTARE}"},
        returncode=3,
        row="a program built with ASan",
    )
    assert len(run.traces) == 2
    assert_readable(count_events, run.traces)


@pytest.mark.parametrize("order", ["tare first", "tare last"])
def test_malloc_that_must_not_be_entered_twice(
    run_bare_and_traced, count_events, calls_program, program, any_python, order
):
    library = program("own_malloc.c", "-shared", "-fPIC", "-fno-builtin")
    preload = f"{LIBTARE}:{library}" if order == "tare first" else f"{library}:{LIBTARE}"
    cases = ["generators", "asynchronous", "exits_in_threads", "interval_signals", "spawns"]
    for command in ([any_python, PYTHON, *cases], calls_program("blocks")):
        run = run_bare_and_traced(
            command,
            env={"LD_PRELOAD": library},
            trace_env={"LD_PRELOAD": preload},
            row="a malloc that must not be entered twice",
        )
        assert run.returncode in (0, 3)
        assert run.traces
        assert_readable(count_events, run.traces)


def test_musl_and_static_children(run_bare_and_traced, tmp_path, any_python):
    source = tmp_path / "child.c"
    source.write_text("int main(void) { return 4; }\n")
    children = []
    for compiler in (["gcc", "-static"], ["musl-gcc"]):
        if shutil.which(compiler[0]):
            child = tmp_path / compiler[0]
            if subprocess.run([*compiler, source, "-o", child]).returncode == 0:
                children.append(str(child))
    code = f"import subprocess\nfor c in {children!r}: print(subprocess.run([c], capture_output=True))"
    row = "children that are linked statically, or with musl"
    run = run_bare_and_traced([any_python, "-c", code], returncode=0, row=row)
    assert len(run.traces) == 1


def test_setuid(run_bare_and_traced, tmp_path):
    """The dynamic linker takes no preload for another user's program."""
    source = tmp_path / "setuid.c"
    source.write_text(
        "#include <stdio.h>\n#include <stdlib.h>\n#include <sys/auxv.h>\n"
        'int main(void) { printf("%lu %d\\n", getauxval(AT_SECURE), !!getenv("TARE_OUTPUT")); return 4; }\n'
    )
    child = tmp_path / "setuid"
    subprocess.run(["gcc", source, "-o", child], check=True)
    try:
        os.chown(child, 65534, 65534)
    except PermissionError:
        pytest.skip("may not give a file away")
    child.chmod(0o6755)
    script = f"{child} | cut -d' ' -f1; {child} >/dev/null; exit $?"
    run = run_bare_and_traced(["sh", "-c", script], returncode=4, row="setuid")
    assert run.stdout == "1\n" and not run.traces


def test_origin_of_the_caller_counts(run_bare_and_traced, program, tmp_path):
    """A program, and a library in another folder that opens another: each by its own $ORIGIN and RUNPATH."""
    folders = [tmp_path / name for name in ("program", "library", "leaf")]
    for folder in folders:
        folder.mkdir()
    leaf, library = folders[2] / "libleaf.so", folders[1] / "libopens.so"
    subprocess.run(["gcc", "-shared", "-o", leaf, "-x", "c", "/dev/null"], check=True)
    built = program("process_origin.c", "-shared", "-fPIC", "-Wl,-rpath,$ORIGIN/../leaf", "-Wl,-z,origin")
    shutil.copy(built, library)
    main = folders[0] / "main"
    shutil.copy(program("process_origin.c", "-Wl,-rpath,$ORIGIN/../library", "-Wl,-z,origin"), main)
    run = run_bare_and_traced([main], returncode=0, row="dlopen by RUNPATH and by $ORIGIN")
    assert run.stdout == "found\n" * 4
