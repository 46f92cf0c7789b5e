"""Life in the traced process: start, end, children, threads, descriptors, disks that are full."""

import os
import random
import re
import resource
import shutil
import signal
import struct
import subprocess
import sys
import time

import pytest
from conftest import BUILD, LIBTARE, PROG, TARE, clean_environment

END = PROG / "process_end.py"
CHILDREN = PROG / "process_children.py"
BUSY = PROG / "process_busy.py"
MANY = "1500000"  # calls that make a trace of some megabytes
SOME = "200000"  # of half a megabyte

STOP_MAX_BYTES, STOP_DURATION, STOP_WRITE, STOP_FILE_LIMIT = 1, 2, 3, 4
ENDED_BY_EXIT = 1


def frames_of(dump, function):
    """How often a Python function was entered, by a trace's dump."""
    codes = {code["code"] for code in dump.records("CODE") if code["name"].endswith(function)}
    return sum(frame["code"] in codes for frame in dump.events("FRAME"))


def info_of(dump):
    return {record["key"]: record["value"] for record in dump.records("INFO")}


def header_of(trace):
    """(stopped, ended) of a trace's header."""
    stopped, _, ended = struct.unpack_from("<3I", trace.read_bytes(), 120)
    return stopped, ended


# -------------------------------------------------------------------------------- ends


ENDS = {
    "normal": (0, "returns from main"),
    "thread": (0, "a daemon thread at the end"),
    "exit3": (3, "sys.exit(3)"),
    "exception": (1, "an uncaught exception"),
    "_exit": (4, "os._exit"),
    "SIGINT": (-signal.SIGINT, "an uncaught Ctrl-C (SIGINT)"),
    "SIGTERM": (-signal.SIGTERM, "SIGTERM"),
    "SIGKILL": (-signal.SIGKILL, "SIGKILL"),
    "abort": (-signal.SIGABRT, "abort"),
    "crash": (-signal.SIGSEGV, "a segmentation fault"),
}


def entered(count_events, trace, *function):
    """Frames, those of one function or all, of a trace of which nothing is lost."""
    counts = count_events(trace, *function)
    assert not any(counts[what] for what in ("lost", "damaged", "missing", "truncated")), counts
    return sum(events.get("FRAME", 0) for events in counts["threads"].values())


@pytest.mark.parametrize("how", ENDS)
def test_end(run_bare_and_traced, run_traced, dump, count_events, any_python, how):
    """No event is missing, neither of a short trace nor of one with many blocks."""
    status, row = ENDS[how]
    run = run_bare_and_traced([any_python, END, how], returncode=status, row=row)
    assert frames_of(dump(run.trace), "leaf") == 100
    ends_by_itself = how in ("normal", "thread", "exit3", "exception")
    assert header_of(run.trace) == (0, ENDED_BY_EXIT if ends_by_itself else 0)
    long = run_traced([any_python, END, how, "100000"])
    assert long.stdout == run.stdout
    # The interpreter's own, such as a weak reference's, are not the same in each run.
    assert entered(count_events, long.trace, "leaf") == 100000
    for last in ("show", "by_signal"):
        assert entered(count_events, long.trace, last) == entered(count_events, run.trace, last)


def test_exec_begins_a_trace_of_its_own(run_bare_and_traced, run_traced, dump, count_events, any_python):
    run = run_bare_and_traced([any_python, END, "exec"], returncode=3, row="os.execv of another Python")
    traces = [dump(trace) for trace in run.traces]
    assert [frames_of(trace, "leaf") for trace in traces] == [100, 100]
    assert len({re.match(r"tare-(\d+)-", trace.name)[1] for trace in run.traces}) == 1
    assert [header_of(trace)[1] for trace in run.traces] == [0, ENDED_BY_EXIT]
    long = run_traced([any_python, END, "exec", "100000"])
    assert [entered(count_events, trace, "leaf") for trace in long.traces] == [100000, 100000]


# -------------------------------------------------------------------------------- interpreters


@pytest.mark.parametrize("options", [[], ["-I", "-S"], ["-I", "-S", "-E"]], ids=["plain", "isolated", "alone"])
def test_every_interpreter(run_bare_and_traced, dump, any_python, options):
    row = "options " + " ".join(options) if options else ()
    run = run_bare_and_traced([any_python, *options, END, "normal"], returncode=0, row=row)
    trace = dump(run.trace)
    version = subprocess.run([any_python, "-V"], capture_output=True, text=True).stdout.split()[1]
    assert info_of(trace)["python"] == version
    assert frames_of(trace, "leaf") == 100
    # The script's own frame: the hook was there before its first line.
    assert frames_of(trace, "<module>") >= 1


def test_embedded_interpreter(run_bare_and_traced, dump, program, any_python):
    """libpython is opened by a program that has none at its start."""
    ask = "import sys, sysconfig as s; print(sys.base_prefix, s.get_config_var('INSTSONAME'))"
    done = subprocess.run([any_python, "-c", ask], capture_output=True, text=True)
    prefix, name = done.stdout.split()
    home = {"PYTHONHOME": prefix, "LD_LIBRARY_PATH": f"{prefix}/lib"}
    if ".so" not in name:
        pytest.skip("no shared libpython")
    row = "an embedded interpreter"
    run = run_bare_and_traced([program("process_embed.c"), name], env=home, returncode=0, row=row)
    assert frames_of(dump(run.trace), "leaf") == 100


def test_inert_without_python_and_cuda(run_bare_and_traced, tmp_path):
    source = tmp_path / "x.c"
    source.write_text("int main(void) { return 0; }\n")
    command = f"for i in 1 2 3; do echo $i | cat; done; gcc -o x {source} && ./x; rm x; exit 9"
    run = run_bare_and_traced(["sh", "-c", command], returncode=9)
    assert run.traces == []


# -------------------------------------------------------------------------------- children


CHILDREN_OF = {  # how: (traces, traces with TARE_CHILDREN=all, row)
    "fork": (1, 2, "fork"),
    "fork_to_the_end": (1, 2, "fork, the child ends as an interpreter"),
    "double_fork": (1, 3, "a double fork"),
    "daemon": (1, 3, "a daemon: double fork, all descriptors closed"),
    "fork_while_busy": (1, 21, "fork while other threads make calls"),
    "pool": (1, 3, "multiprocessing, fork"),
    "spawn": (1, 4, "multiprocessing, spawn"),  # the resource tracker too
    "forkserver": (1, 5, "multiprocessing, forkserver"),
    "by_subprocess": (2, 2, "subprocess (vfork)"),
    "by_shell": (1, 1, "a shell with children"),
    "by_vfork": (1, 1, "posix_spawn"),
}


@pytest.mark.parametrize("how", CHILDREN_OF)
def test_children(run_bare_and_traced, count_events, any_python, how):
    traces, _, row = CHILDREN_OF[how]
    run = run_bare_and_traced([any_python, CHILDREN, how], returncode=0, row=row)
    assert len(run.traces) == traces
    assert all(entered(count_events, trace) for trace in run.traces)


@pytest.mark.parametrize("how", CHILDREN_OF)
def test_children_recorded(run_bare_and_traced, count_events, dump, python, how):
    traces, with_all, _ = CHILDREN_OF[how]
    run = run_bare_and_traced([python, CHILDREN, how], trace_env={"TARE_CHILDREN": "none"})
    assert len(run.traces) == traces
    run = run_bare_and_traced([python, CHILDREN, how], trace_env={"TARE_CHILDREN": "all"})
    assert len(run.traces) == with_all
    # Those that end by _exit, by a signal of their parent, or as they like: nothing is lost.
    assert all(entered(count_events, trace) for trace in run.traces)
    if how in ("fork", "fork_to_the_end", "double_fork", "daemon"):
        assert [frames_of(dump(trace), "leaf") for trace in run.traces[1:]][-1] == 100
    if how == "fork":
        parent, child = map(dump, run.traces)
        # What the parent had open at the fork is open in the child too, without its enter.
        assert child.records("THREAD")[0]["depth"] > 0
        assert frames_of(parent, "leaf") == 0
        assert info_of(child)["python"] == info_of(parent)["python"]
        assert [layer["layer"] for layer in child.records("LAYER")] == [
            layer["layer"] for layer in parent.records("LAYER")
        ]


def calls_of(counts):
    return {thread: events["SYNC"] for thread, events in counts["threads"].items()}


def test_fork_of_a_program_in_c(run_bare_and_traced, count_events, program, cudart):
    command = program("process_fork.c", *cudart())
    run = run_bare_and_traced([command, "fork"], returncode=0)
    parent, child = map(count_events, run.traces)
    assert (calls_of(parent), calls_of(child)) == ({1: 100}, {1: 11})
    assert (parent["ended"], child["ended"]) == (ENDED_BY_EXIT, 0)
    for children in ("all", "none"):
        run = run_bare_and_traced([command, "fork"], trace_env={"TARE_CHILDREN": children})
        assert len(run.traces) == (2 if children == "all" else 1)


def test_fork_while_other_threads_make_calls(run_bare_and_traced, count_events, program, cudart):
    command = [program("process_fork.c", *cudart()), "fork-busy"]
    run = run_bare_and_traced(command, returncode=0, row="fork while other threads make CUDA calls")
    parent, *children = map(count_events, run.traces)
    assert len(children) == 50
    assert all(calls_of(child) == {1: 11} for child in children)
    assert set(parent["threads"]) == {1, 2, 3}
    assert not any(counts["lost"] or counts["damaged"] for counts in (parent, *children))


def test_fork_in_a_signal_handler(run_bare_and_traced, count_events, program, cudart):
    """Some of the children find themselves in the middle of our own code."""
    command = [program("process_fork.c", *cudart()), "handler"]
    run = run_bare_and_traced(command, returncode=0, row="fork in a signal handler, in our own code")
    assert run.stdout == "0\n"
    parent, *children = map(count_events, run.traces)
    assert parent["threads"][1]["SYNC"] + parent["threads"][1]["TARE"] == parent["threads"][1]["LEAVE"]
    assert all(1000 <= calls_of(child)[1] <= 1001 for child in children)
    assert not any(counts["lost"] or counts["damaged"] for counts in (parent, *children))


def test_vfork_child_is_left_alone(run_bare_and_traced, count_events, program, cudart):
    run = run_bare_and_traced([program("process_fork.c", *cudart()), "vfork"], returncode=0, row="vfork")
    assert calls_of(count_events(run.trace)) == {1: 200}


def test_a_program_with_cuda_that_makes_no_call(run_bare_and_traced, program, cudart):
    run = run_bare_and_traced([program("process_fork.c", *cudart()), "none"], returncode=0)
    assert run.traces == []


# -------------------------------------------------------------------------------- threads


def test_threads(run_bare_and_traced, dump, any_python):
    row = "64 short threads, a pool, one that outlives main"
    run = run_bare_and_traced([any_python, PROG / "process_threads.py"], returncode=0, row=row)
    trace = dump(run.trace)
    assert len(trace.records("THREAD")) == 1 + 64 + 4 + 1 + 8
    codes = {code["code"] for code in trace.records("CODE") if code["name"].endswith("leaf")}
    calls = {}
    for frame in trace.events("FRAME"):
        if frame["code"] in codes:
            calls[frame["thread"]] = calls.get(frame["thread"], 0) + 1
    short = [calls[thread] for thread in sorted(calls)][:64]
    assert short == [10] * 64
    assert sum(calls.values()) >= 640 + 1000 + 80
    assert not trace.records("LOST")


def test_calls_after_a_threads_other_keys(run_bare_and_traced, count_events, program, cudart):
    command = [program("process_fork.c", *cudart()), "key"]
    run = run_bare_and_traced(command, returncode=0, row="calls in destructors of thread-local values")
    assert calls_of(count_events(run.trace)) == {1: 15}


def test_cancelled_threads(run_bare_and_traced, count_events, program, cudart):
    run = run_bare_and_traced([program("process_fork.c", *cudart()), "cancel"], returncode=0, row="threads that are cancelled")
    counts = count_events(run.trace)
    assert len(counts["threads"]) == 20
    assert all(calls > 10 for calls in calls_of(counts).values())
    assert counts["damaged"] == 0


# -------------------------------------------------------------------------------- killed


def blocks_of(trace):
    """(thread, block) of each finished block, from the bytes of the file alone."""
    data, blocks = trace.read_bytes(), []
    at = struct.unpack_from("<I", data, 12)[0]
    while at + 72 <= len(data):
        sync, size, kind, _, _, thread, block = struct.unpack_from("<IIBBHIQ", data, at)
        assert sync == 0x4D524654, f"no frame at {at}"
        if kind == 1:
            blocks.append((thread, block))
        at += size
    return blocks


def check_killed(trace, made, counts):
    """`made`: how many calls each thread had begun when the process was killed."""
    assert counts["damaged"] == counts["missing"] == counts["lost"] == 0
    blocks = blocks_of(trace)
    assert len(blocks) == len(set(blocks))
    for thread, calls in enumerate(made, 1):
        events = {"SYNC": 0, "TARE": 0, "LEAVE": 0, **counts["threads"][thread]}
        assert calls - 100 <= events["SYNC"] <= calls
        # Each enter has its leave, but for what was open: a call, or what we did in it.
        open_spans = events["SYNC"] + events["TARE"] - events["LEAVE"]
        assert 0 <= open_spans <= 2


def kill_at_random_moment(command, folder, longest):
    """Returns the trace and the calls that each thread had begun."""
    folder.mkdir()
    env = clean_environment({"LD_PRELOAD": LIBTARE, "TARE_OUTPUT": f"{folder}/x.tare"})
    counts = folder / "counts"
    process = subprocess.Popen([*command, counts, "3"], env=env)
    deadline = time.monotonic() + 30
    while not (counts.exists() and any(counts.read_bytes())) and time.monotonic() < deadline:
        time.sleep(0.001)
    time.sleep(random.uniform(0, longest))
    process.kill()
    process.wait()
    data = counts.read_bytes()
    made = struct.unpack(f"<{len(data) // 8}Q", data)
    return folder / "x.tare", made[:: len(made) // 3]


def kill_c_at_random_moments(moments, longest, tmp_path, count_events, program, cudart):
    command = [program("process_kill.c", *cudart())]
    for moment in range(moments):
        trace, made = kill_at_random_moment(command, tmp_path / str(moment), longest)
        counts = count_events(trace)
        # The newest thread may have counted a call, but not yet have a place in the trace.
        begun = [calls for calls in made if calls]
        if len(begun) > len(counts["threads"]):
            assert begun.pop() <= 100
        check_killed(trace, begun, counts)
        shutil.rmtree(trace.parent)


def test_killed_at_random_moments(tmp_path, count_events, program, cudart):
    kill_c_at_random_moments(50, 0.15, tmp_path, count_events, program, cudart)


@pytest.mark.slow
def test_killed_at_many_random_moments(tmp_path, count_events, program, cudart):
    kill_c_at_random_moments(100, 1.0, tmp_path, count_events, program, cudart)


def test_python_killed_at_random_moments(tmp_path, dump, count_events, python):
    for moment in range(6):
        command = [python, PROG / "process_kill.py"]
        trace, made = kill_at_random_moment(command, tmp_path / str(moment), 0.03)
        dumped, counts = dump(trace), count_events(trace)
        blocks = blocks_of(trace)
        assert len(blocks) == len(set(blocks))
        assert counts["damaged"] == counts["missing"] == counts["lost"] == 0
        leaf = {code["code"] for code in dumped.records("CODE") if code["name"] == "leaf"}
        frames = [frame["thread"] for frame in dumped.events("FRAME") if frame["code"] in leaf]
        # The main thread is the first; the others begin in turn.
        for thread, calls in enumerate(made, 2):
            assert calls - 100 <= frames.count(thread) <= calls


@pytest.mark.parametrize("how", [signal.SIGTERM, signal.SIGSEGV])
def test_killed_otherwise(tmp_path, count_events, program, cudart, how):
    command = program("process_kill.c", *cudart())
    env = clean_environment({"LD_PRELOAD": LIBTARE, "TARE_OUTPUT": f"{tmp_path}/x.tare"})
    process = subprocess.Popen([command, tmp_path / "counts", "3"], env=env)
    time.sleep(0.3)
    process.send_signal(how)
    assert process.wait() == -how
    made = struct.unpack("<24Q", (tmp_path / "counts").read_bytes())[::8]
    check_killed(tmp_path / "x.tare", made, count_events(tmp_path / "x.tare"))


# -------------------------------------------------------------------------------- files


def test_descriptors(run_bare_and_traced, dump, any_python):
    row = "closerange, files in the numbers"
    run = run_bare_and_traced([any_python, PROG / "process_descriptors.py"], returncode=0, row=row)
    assert len(run.folder.joinpath("file-7").read_text()) == len("what I wrote\n")
    assert frames_of(dump(run.trace), "leaf") == 1000 + 20 * 500 + 1000


def test_folder_that_cannot_be_written(run_bare_and_traced, any_python):
    """/proc takes no files from anybody."""
    for output in ("x.tare", "no/such/folder/x.tare", ""):
        run = run_bare_and_traced(
            [any_python, END, "normal"],
            cwd="/proc",
            trace_env={"TARE_OUTPUT": output},
            row="a working directory that cannot be written",
        )
        assert run.traces == []


def limit_files(bytes_):
    return lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (bytes_, bytes_))


@pytest.mark.parametrize("limit", [100 << 10, 2 << 20])
def test_file_size_limit(run_bare_and_traced, any_python, limit):
    """SIGXFSZ would kill the program."""
    command = [any_python, BUSY, MANY if limit > 1 << 20 else SOME]
    run = run_bare_and_traced(command, returncode=0, preexec_fn=limit_files(limit), row="RLIMIT_FSIZE")
    assert [header_of(trace)[0] for trace in run.traces] == (
        [STOP_FILE_LIMIT] if limit > 1 << 20 else []
    )


@pytest.fixture
def small_disk(tmp_path):
    """Makes a file system of `size`; only root may."""
    mounted = []

    def small_disk(size):
        folder = tmp_path / f"disk-{size}"
        folder.mkdir()
        command = ["mount", "-t", "tmpfs", "-o", f"size={size}", "tmpfs", folder]
        if os.geteuid() != 0 or subprocess.run(command, stderr=subprocess.DEVNULL).returncode:
            pytest.skip("may not mount a file system")
        mounted.append(folder)
        return folder

    yield small_disk
    for folder in mounted:
        subprocess.run(["umount", folder], check=True)


@pytest.mark.parametrize("size", ["4k", "64k", "200k", "1m"])
def test_disk_that_fills_up(run_bare_and_traced, count_events, any_python, small_disk, size):
    disk = small_disk(size)
    run_bare_and_traced(
        [any_python, BUSY, MANY if size == "1m" else SOME],
        returncode=0,
        trace_env={"TARE_OUTPUT": f"{disk}/"},
        row="a disk that fills up",
    )
    traces = list(disk.glob("*.tare"))
    if size == "1m":
        assert [header_of(trace)[0] for trace in traces] == [STOP_WRITE]
        assert count_events(traces[0])["events"] > 100_000
    elif size == "4k":
        assert traces == []


def test_max_bytes(run_bare_and_traced, count_events, python):
    command = [python, BUSY, MANY]
    run = run_bare_and_traced(command, returncode=0, trace_env={"TARE_MAX_BYTES": "1M"})
    assert header_of(run.trace)[0] == STOP_MAX_BYTES
    assert run.trace.stat().st_size <= 1 << 20
    assert count_events(run.trace)["events"] > 100_000


# -------------------------------------------------------------------------------- knobs


def test_wrong_value_is_said_once(run_traced, python):
    command = [python, CHILDREN, "fork"]
    env = {"TARE_LAYERS": "nonsense", "TARE_CHILDREN": "all"}
    run = run_traced(command, trace_env=env)
    assert (run.returncode, run.stdout.splitlines()[0]) == (0, "100")
    assert re.fullmatch(
        r"tare: wrong value of TARE_LAYERS, taken as frames,ops,cuda .*\n", run.stderr
    )
    assert len(run.traces) == 2


def test_wrong_value_in_a_process_that_records_nothing(run_bare_and_traced):
    run_bare_and_traced(["sh", "-c", "true"], trace_env={"TARE_DELAY": "-1", "TARE_LAYERS": "x"})


def test_no_layers(run_bare_and_traced, python):
    run = run_bare_and_traced([python, END, "normal"], trace_env={"TARE_LAYERS": "none"})
    assert run.traces == []


def test_verbose(run_traced, python):
    run = run_traced([python, END, "normal"], trace_env={"TARE_VERBOSE": "1"})
    assert f"tare: trace: {run.trace}\n" in run.stderr


@pytest.mark.parametrize(
    "output, expected",
    [
        ("x", r"x"),
        ("x.tare", r"x\.tare"),
        ("%p-%t-%r-%h%%.tare", r"\d+-\d{10}-3-[^/]+%\.tare"),
        ("%x%", r"%x%"),
        ("new/", r"new/tare-\d+-\d{10}\.tare"),
        ("new/%p", r"new/\d+"),
        (".", r"tare-\d+-\d{10}\.tare"),
    ],
)
def test_names(run_traced, python, output, expected):
    env = {"TARE_OUTPUT": output, "RANK": "3"}
    run = run_traced([python, END, "exit3"], trace_env=env)
    files = [str(path.relative_to(run.folder)) for path in run.folder.rglob("*") if path.is_file()]
    assert len(files) == 1 and re.fullmatch(expected, files[0])


def test_names_that_are_taken(run_traced, python, tmp_path):
    """Another process's trace is never written over."""
    for output, names in (
        ("x.tare", ["x-2.tare", "x-3.tare", "x.tare"]),
        ("x", ["x", "x-2", "x-3"]),
    ):
        folder = tmp_path / output
        folder.mkdir()
        for _ in range(3):
            run_traced([python, END, "normal"], cwd=folder, trace_env={"TARE_OUTPUT": output})
        assert sorted(path.name for path in folder.iterdir()) == names
        assert len({path.read_bytes() for path in folder.iterdir()}) == 3


def test_relative_output_is_taken_from_where_it_started(run_traced, python, tmp_path):
    code = "import os; os.chdir('/'); import json"
    run = run_traced([python, "-S", "-c", code], trace_env={"TARE_OUTPUT": "x.tare"})
    assert (run.folder / "x.tare").exists()


def test_facts_about_the_process(run_traced, dump, python):
    env = {"RANK": "3", "LOCAL_RANK": "1", "WORLD_SIZE": "8"}
    run = run_traced([python, END, "normal"], trace_env=env)
    info = info_of(dump(run.trace))
    assert info["command"] == f"{python} {END} normal"
    assert info["cwd"] == str(run.folder)
    assert (info["rank"], info["local_rank"], info["world_size"]) == ("3", "1", "8")
    assert info["python"] == ".".join(map(str, sys.version_info[:3]))
    assert {"tare", "exe", "host", "glibc"} <= set(info)


def test_delay_records_allocations_alone(run_bare_and_traced, dump, program, cudart):
    command = [program("process_fork.c", *cudart()), "delay"]
    run = run_bare_and_traced(command, returncode=0, trace_env={"TARE_DELAY": "1000"})
    trace = dump(run.trace)
    events = [event["event"] for event in trace.events() if event["event"] != "TARE"]
    assert not trace.events("SYNC")
    allocation, free = trace.events("MEMORY")
    (result,) = trace.events("RESULT")
    assert allocation["bytes"] == 4096 and result["value"] == free["pointer"] != 0
    assert events.count("LEAVE") == 2 + len(trace.events("TARE"))

    # It sleeps for longer than that before its last 100 calls.
    run = run_bare_and_traced(command, returncode=0, trace_env={"TARE_DELAY": "0.4"})
    trace = dump(run.trace)
    assert 100 <= len(trace.events("SYNC")) <= 120
    assert len(trace.events("MEMORY")) == 2


def test_delay_of_a_python_program(run_bare_and_traced, python):
    run = run_bare_and_traced([python, END, "normal"], trace_env={"TARE_DELAY": "1000"})
    assert run.traces == []


def test_duration(run_bare_and_traced, count_events, program, cudart, tmp_path):
    """Recording ends with the block that is full after it."""
    env = clean_environment(
        {"LD_PRELOAD": LIBTARE, "TARE_OUTPUT": f"{tmp_path}/x.tare", "TARE_DURATION": "0.2"}
    )
    command = [program("process_kill.c", *cudart()), tmp_path / "counts", "1"]
    process = subprocess.Popen(command, env=env)
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline:
        time.sleep(0.1)
        if (tmp_path / "x.tare").exists() and header_of(tmp_path / "x.tare")[0]:
            break
    process.kill()
    process.wait()
    made = struct.unpack_from("<Q", (tmp_path / "counts").read_bytes())[0]
    counts = count_events(tmp_path / "x.tare")
    assert counts["stopped"] == STOP_DURATION
    assert 0 < calls_of(counts)[1] < made


def test_duration_of_a_slow_program(run_bare_and_traced, dump, python):
    """Few events, no block is ever full: it is over all the same."""
    code = "import time\ndef step(): time.sleep(0.05)\nfor _ in range(40): step()"
    run = run_bare_and_traced([python, "-c", code], returncode=0, trace_env={"TARE_DURATION": "0.4"})
    assert header_of(run.trace)[0] == STOP_DURATION
    items = dump(run.trace)
    (step,) = (one["code"] for one in items.records("CODE") if one["name"] == "step")
    assert 0 < sum(one["code"] == step for one in items.events("FRAME")) < 40
    # What the program had not ended is no part of its exit; the trace ends where it was stopped.
    text = subprocess.run([TARE, "report", run.trace], capture_output=True, text=True, check=True).stdout
    assert not re.search(r"^where the time went .*\bexit\b", text, re.MULTILINE)
    text = subprocess.run([TARE, "info", run.trace], capture_output=True, text=True, check=True).stdout
    last = max(one["time_ns"] for one in items.events()) / 1e9
    after = re.search(r"covers the first ([\d.]+) (m?s) of .*: TARE_DURATION was over", text)
    assert float(after[1]) / (1 if after[2] == "s" else 1000) == pytest.approx(last, rel=0.01)


# -------------------------------------------------------------------------------- linking


def test_dlopen_is_left_by_a_jump():
    """A wrapper that calls the real one would hide the caller, whose RUNPATH counts."""
    command = ["objdump", "-d", "--no-show-raw-insn", "--disassemble=dlopen", LIBTARE]
    code = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    instructions = re.findall(r"^\s+[0-9a-f]+:\s+(\S+)\s*(.*)$", code, re.MULTILINE)
    assert any(name == "jmp" and target.startswith("*") for name, target in instructions)
    assert not any(name.startswith("call") and "*" in target for name, target in instructions)


def test_runpath_of_the_caller_counts(run_bare_and_traced, program, tmp_path):
    leaf = tmp_path / "leaf" / "libtare_runpath_leaf.so"
    leaf.parent.mkdir()
    subprocess.run(["gcc", "-shared", "-o", leaf, "-x", "c", "/dev/null"], check=True)
    flags = [f"-Wl,-rpath,{leaf.parent}", "-Wl,--enable-new-dtags"]
    run = run_bare_and_traced([program("process_runpath.c", *flags)], returncode=0)
    assert run.stdout.startswith("found\n")


def test_one_libtare_for_all():
    """No library but libc's: it has to load everywhere, next to everything."""
    command = ["readelf", "-d", "-W", BUILD / "libtare.so"]
    dynamic = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    needed = set(re.findall(r"NEEDED.*\[(.*?)\]", dynamic))
    libc = {"libc.so.6", "libdl.so.2", "libpthread.so.0", "ld-linux-x86-64.so.2", "libgcc_s.so.1"}
    assert needed <= libc
