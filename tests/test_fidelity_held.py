"""
While a thread is in the middle of our code, and stays there: in a hook around a call that does not return, or
writing a full block. The process forks, or ends in every way: as bare, and nothing is missing in its trace.
"""

import struct
import subprocess

import pytest
from conftest import LIBTARE, PROG


@pytest.fixture(scope="session")
def held_runtime(tmp_path_factory):
    folder = tmp_path_factory.mktemp("held")
    script = folder / "version.map"
    script.write_text("libcudart.so.13 { cuda*; runtime_*; };\n")
    runtime, plugin = folder / "libcudart.so.13", folder / "libheld_plugin.so"
    command = ["gcc", "-std=gnu17", "-O1", "-shared", "-fPIC"]
    flags = [f"-Wl,--version-script={script}", f"-Wl,-soname,{runtime.name}"]
    subprocess.run([*command, PROG / "held_runtime.c", "-o", runtime, *flags], check=True)
    flags = [runtime, f"-Wl,-rpath,{folder}"]
    subprocess.run([*command, PROG / "held_plugin.c", "-o", plugin, *flags], check=True)
    return runtime, plugin


def events_of(counts, thread, name):
    return counts["threads"].get(thread, {}).get(name, 0)


def assert_whole(counts):
    assert not any(counts[what] for what in ("lost", "damaged", "missing", "truncated")), counts


CALLS = {
    "fork": (0, "fork during another thread's call"),
    "exit": (5, "exit during a call"),
    "_exit": (6, "os._exit during a call"),
    "SIGKILL": (-9, "SIGKILL during a call"),
    "exec": (0, "os.execv during a call"),
}


@pytest.mark.parametrize("how", CALLS)
def test_during_a_call(run_bare_and_traced, count_events, dump, held_runtime, any_python, how):
    status, row = CALLS[how]
    command = [any_python, PROG / "held_calls.py", held_runtime[1], how]
    run = run_bare_and_traced(command, returncode=status, row=row)
    first, *others = run.traces
    counts = count_events(first)
    assert_whole(counts)
    # 10 queries of the main thread, and the call that is open, or over.
    assert (events_of(counts, 1, "SYNC"), events_of(counts, 2, "SYNC")) == (10, 1)
    opened = sum(events_of(counts, 2, name) for name in ("FRAME", "CALLBACK", "SECTION", "GIL", "SYNC", "TARE"))
    assert (opened > events_of(counts, 2, "LEAVE")) == (how != "fork")
    leaf = [code["code"] for code in dump(first).records("CODE") if code["name"].endswith("leaf")]
    calls = [frame["thread"] for frame in dump(first).events("FRAME") if frame["code"] in leaf]
    assert calls.count(1) == (200 if how == "fork" else 100)
    assert calls.count(2) == (200 if how == "fork" else 100)
    if how == "fork":
        children = [count_events(trace) for trace in others]
        assert [events_of(child, 1, "SYNC") for child in children] == [11] * 3
        for child in children:
            assert_whole(child)
    assert len(others) == {"fork": 3, "exec": 1}.get(how, 0)


FLUSHES = {
    "fork": (0, "fork during another thread's flush"),
    "exit": (5, "exit during a flush"),
    "_exit": (6, "_exit during a flush"),
    "abort": (-6, "abort during a flush"),
    "SIGKILL": (-9, "SIGKILL during a flush"),
    "exec": (8, "execv during a flush"),
}


@pytest.mark.parametrize("before", [0, 1000], ids=["first block", "full block"])
@pytest.mark.parametrize("how", FLUSHES)
def test_during_a_flush(
    run_bare_and_traced, count_events, program, fake_runtime, failing, tmp_path, how, before
):
    status, row = FLUSHES[how]
    link = str(fake_runtime), f"-Wl,-rpath,{fake_runtime.parent}"
    made = tmp_path / "made"
    run = run_bare_and_traced(
        [program("held_flush.c", *link), how, before],
        env={"LD_PRELOAD": failing},
        trace_env={"LD_PRELOAD": f"{LIBTARE}:{failing}", "TARE_TEST_CALLS": made},
        returncode=status,
        row=row,
    )
    (calls,) = struct.unpack("<Q", made.read_bytes())
    first, *children = map(count_events, run.traces)
    for counts in (first, *children):
        assert_whole(counts)
    assert events_of(first, 1, "SYNC") == (1100 if how == "fork" else 100)
    if how == "fork":
        assert calls == events_of(first, 2, "SYNC") == 200000
        assert [events_of(child, 1, "SYNC") for child in children] == [11, 11]
    else:
        # Held in its first call, or when a block is as full as can be.
        assert calls == 1 if not before else 1000 < calls < 200000
        assert calls - 1 <= events_of(first, 2, "SYNC") <= calls
        assert not children
