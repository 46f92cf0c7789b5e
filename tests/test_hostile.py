"""
Traces that were made to do harm, and files that are none: every command ends, soon, within bounds, and what it
prints is harmless. What fuzzers found is in tests/fuzz/.
"""

import csv
import io
import json
import os
import re
import resource
import shutil
import subprocess
import threading
import unicodedata

import pytest
from conftest import ROOT, TARE, clean_environment
from trace_bytes import DEFS, EVENTS, ZSTD, TraceBytes, trace_library, varint

GOLDEN = ROOT / "tests" / "golden"
COMMANDS = {
    "report": ["report"],
    "report in JSON": ["report", "--format", "json"],
    "report as CSV": ["report", "--format", "csv"],
    "ops": ["ops", "--by", "op,site", "--nested", "--device"],
    "ops in JSON": ["ops", "--by", "line,module,thread", "--format", "json"],
    "ops as CSV": ["ops", "--nested", "--format", "csv"],
    "syncs": ["syncs", "--fail-on", "hot,periodic,once,unknown,explicit"],
    "syncs in JSON": ["syncs", "--format", "json"],
    "syncs as CSV": ["syncs", "--format", "csv"],
    "info": ["info"],
    "info in JSON": ["info", "--format", "json"],
    "info as CSV": ["info", "--format", "csv"],
    "dump": ["dump"],
    "dump in JSON": ["dump", "--format", "json"],
}
MEMORY = 1200 << 20  # address space: what is known of 256 MB of definitions, and the program itself


def run(command, *files, statuses=(0, 1), **more):
    """(stdout, stderr); in any case an error is one line that names the command, and ends with 2."""
    done = subprocess.run(
        [TARE, *command, *map(str, files)],
        capture_output=True,
        timeout=100,
        env=clean_environment({"XDG_CACHE_HOME": "/nowhere"}),
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY)),
        **more,
    )
    # Always UTF-8, whatever is in the trace.
    out, err = done.stdout.decode(), done.stderr.decode()
    assert done.returncode in statuses, (done.returncode, err)
    assert all(line.startswith("tare: ") for line in err.splitlines()), err
    if done.returncode == 2:
        assert not out and len(err.splitlines()) == 1, err
    return out, err


@pytest.fixture(scope="session")
def build(tmp_path_factory):
    return TraceBytes(trace_library(tmp_path_factory.mktemp("bytes")))


def start(build, **more):
    return build.header(pid=7, end=(10**9, 10**9), **more)


def packed(build, records, block=0):
    """Definitions, compressed."""
    data = b"".join(records)
    return build.frame(DEFS, build.compress(data), ZSTD, block=block, ids_bytes=len(data))


CODE = ("CODE", 1, 0, 1, "/srv/a.py", "f")


# -------------------------------------------------------------------------------- much of little


def bomb(build):
    """60 KB become 1.4 GB of text that is no UTF-8: a third of that is bytes."""
    record = build.record("STRING", 1, b"\xff" * ((16 << 20) - 16))
    frame = packed(build, [record])
    return start(build) + b"".join(
        build.frame(DEFS, frame[72:], ZSTD, block=i, ids_bytes=len(record)) for i in range(30)
    )


def claims(build):
    """Sizes that are none."""
    data = build.compress(bytes(1 << 20))
    most = 2**32 - 1
    return (
        start(build)
        + build.frame(EVENTS, data, ZSTD, thread=1, events=most, ids_bytes=most)
        + build.frame(DEFS, data, ZSTD, ids_bytes=most)
        + build.frame(DEFS, data, ZSTD, ids_bytes=16 << 20)
        + build.frame(EVENTS, data, ZSTD, thread=1, block=1, events=most, times_bytes=1 << 20, ids_bytes=1 << 20)
        + build.frame(EVENTS, data, thread=2, block=2**64 - 1, events=1, length=most)
    )


def nested(build, blocks=40, each=250000):
    """Ten million spans in one another."""
    times, ids = b"\1" * each, build.event("FRAME", 1, 0, 0) * each
    packed_times, packed_ids = build.compress(times), build.compress(ids)
    out = start(build) + build.definitions([build.record(*CODE)])
    for block in range(blocks):
        out += build.frame(
            EVENTS, packed_times + packed_ids, ZSTD, thread=1, block=block, first_time=1000 + block * each,
            depth=block * each, events=each, times_bytes=len(times), ids_bytes=len(ids),
            times_packed=len(packed_times),
        )  # fmt: skip
    return out


def threads(build):
    """All of them at the same time."""
    ids = build.event("FRAME", 1, 0, 0) + build.event("LEAVE", 0)
    frames = (build.streams(number, varint(1) + varint(10**6), ids, 2) for number in range(1, 20001))
    return start(build) + build.definitions([build.record(*CODE)]) + b"".join(frames)


def named(record, count, *fields):
    def make(build):
        values = ([field(i) if callable(field) else field for field in fields] for i in range(count))
        return start(build) + packed(build, [build.record(record, *each) for each in values])

    return make


def jumps(build):
    """Each instruction jumps back to the first: to follow them all takes their number squared."""
    code = bytes([113, 0]) * (4 << 20)
    calls = [event for i in range(1000) for event in ((10, "CALL", 1, 1 + i % 500), (10, "LEAVE", 0))]
    return (
        start(build)
        + packed(build, [build.record(*CODE), build.record("LINES", 1, 0x0309, b"\1\1" * 9, code)])
        + build.events(1, [(1, "FRAME", 1, 0, 0), *calls])
    )


def lists(build):
    """A loop of constant lists, and a million of them behind it."""
    making = bytes([103, 0, 100, 0, 162, 1])
    code = bytes([93, 4]) + making * 100 + bytes([113, 0]) + making * (1 << 20)
    calls = [event for i in range(20000) for event in ((10, "CALL", 1, 10 + i % 50), (10, "LEAVE", 0))]
    return (
        start(build)
        + packed(build, [build.record(*CODE), build.record("LINES", 1, 0x0309, b"\1\1" * 9, code)])
        + build.events(1, [(1, "FRAME", 1, 0, 0), *calls])
    )


MUCH = {
    "bomb": bomb,
    "claims": claims,
    "nested": nested,
    "threads": threads,
    "layers": named("LAYER", 300000, str, 1, ""),
    "facts": named("INFO", 300000, str, "value"),
    "losses": named("LOST", 300000, 1, 1, "reason"),
    "strings": named("STRING", 500000, int, "a name"),
    "far codes": named("CODE", 300000, lambda i: 2**31 + i, 0, 1, "", ""),
    "operators": named("OP", 300000, int, lambda i: f"_ZN2at4_ops{len(str(i)) + 1}a{i}4callEv"),
    "thread records": named("THREAD", 300000, int, 1, 1, 0, "name"),
    "jumps": jumps,
    "lists": lists,
}


@pytest.mark.parametrize("case", MUCH)
def test_much_of_little(build, tmp_path, case):
    trace = tmp_path / "much.tare"
    trace.write_bytes(MUCH[case](build))
    commands = ["report in JSON", "info", "syncs", "dump in JSON"]
    # All that there is would be a GB of output.
    for name in commands[: 3 if case in ("nested", "bomb") else 4]:
        out, err = run(COMMANDS[name], trace)
        assert out
        assert ("cut off or damaged" in err) == (case in ("bomb", "claims")), err


def test_much_is_told(build, tmp_path):
    """What is left out is said, and the rest is as it is."""
    trace = tmp_path / "much.tare"
    trace.write_bytes(nested(build, 2, 1000))
    assert json.loads(run(COMMANDS["info in JSON"], trace)[0])["traces"][0]["events"] == 2000
    out, _ = run(["dump", "--events"], trace)
    assert len(out.splitlines()) == 2000
    trace.write_bytes(bomb(build))
    found = json.loads(run(COMMANDS["info in JSON"], trace)[0])["traces"][0]
    assert found["truncated"] and found["damaged_frames"] > 0


# -------------------------------------------------------------------------------- names

HARM = {
    "escape": b"\x1b[2J\x1b]0;owned\x07",
    "C1": "\u009b31m\u0085".encode(),
    "lines": b"a\nb\r\nc\td\x0b\x0c",
    "controls": bytes(range(1, 32)) + b"\x7f",
    "directions": "\u202egnp.\u2066x\u2069\u200f\u200e\u061c".encode(),
    "separators": "\u2028\u2029".encode(),
    "NUL": b"a\0b",
    "no UTF-8": b"\xff\xfe\xc0\xaf\xe2\x82",
    "surrogates": b"\xed\xa0\x80\xed\xbf\xbf",
    "too far": b"\xf4\x90\x80\x80\xf8\x88\x80\x80\x80",
    "quotes": b"a\",b\"\\\"'`$(x)",
    "formula": b'=HYPERLINK("x")',
    "at": b"@SUM(1)",
    "format": b"%s%n%999999999d",
    "empty": b"",
    "long": b"x" * 100000,
    "wide": "\U0001f600漢字\u0300".encode() * 50,
}


def with_names(build, name):
    """A trace that has the name wherever there can be one."""
    records = [
        build.record("CODE", 1, 0, 1, b"/srv/" + name, name),
        build.record("LINES", 1, 0x0309, b"\1\1", bytes([9, 0]) * 9 + bytes([113, 0])),
        build.record("OP", 1, name),
        build.record("OP", 2, b"aten::" + name),
        build.record("NODE_TYPE", 1, name),
        build.record("STRING", 1, name),
        build.record("FUNCTION", 1, 5, name, name),
        build.record("FUNCTION", 2, 1, b"cudaLaunchKernel" + name, name),
        build.record("THREAD", 1, 7, 1000, 0, name),
        build.record("LAYER", name, 1, name),
        build.record("LAYER", b"frames", 2, name),
        build.record("LAYER", b"gpu", 1, name),
        build.record("LOST", 1, 3, name),
        build.record("MODULE", 1, 0, name, name),
        build.record("STACK", 1, varint(1) + varint(77)),
        build.record("CALIBRATION", name, 1, 1, 1, 1, 1, name),
        build.record("GPU_QUEUE", 1, 0, 1, 7),
        *(build.record("INFO", key, name) for key in ("command", "host", "rank", "python", "torch", "cuda", name)),
    ]
    one = [
        (10, "OP_SPAN", 1, 3), (10, "LAUNCH", 2, 0, 0), (5, "CORRELATION", 9), (10, "LEAVE", 0), (10, "LEAVE", 0),
        (10, "OP_SPAN", 2, 5), (10, "SYNC", 1, 0, 0), (900000, "STACK", 1), (10, "LEAVE", 0), (10, "LEAVE", 0),
        (10, "NODE", 1, 0, 0), (10, "LEAVE", 0), (1, "RANGE_BEGIN", 1), (10, "RANGE_END", 0),
    ]  # fmt: skip
    device = [(900, "GPU_KERNEL", 1, 500, 400, 9, 1, 0)]
    events = [(10, "FRAME", 1, 0, 0), *one * 5, (10, "OP_SPAN", 1, 3)]
    return start(build) + build.definitions(records) + build.events(1, events) + build.events(2, device)


def assert_harmless(text):
    for char in set(text) - set("\n"):
        assert unicodedata.category(char) not in ("Cc", "Zl", "Zp"), repr(char)
        assert unicodedata.bidirectional(char) not in {
            "LRE", "RLE", "PDF", "LRO", "RLO", "LRI", "RLI", "FSI", "PDI",
        }, repr(char)  # fmt: skip
        assert char not in "\u200e\u200f\u061c"


@pytest.mark.parametrize("harm", HARM)
def test_names(build, tmp_path, harm):
    trace = tmp_path / "names.tare"
    trace.write_bytes(with_names(build, HARM[harm]))
    for name, command in COMMANDS.items():
        out, err = run(command, trace)
        assert out
        assert_harmless(err)
        if name.startswith("dump in"):
            assert all(isinstance(json.loads(line), dict) for line in out.rstrip("\n").split("\n"))
        elif "JSON" in name:
            json.loads(out)
        elif "CSV" in name:
            rows = list(csv.reader(io.StringIO(out, newline=""), strict=True))
            assert len({len(row) for row in rows}) == 1 and len(rows) > 1
            # What a spreadsheet would take for a formula is text there.
            assert not any(re.match("[=@+\t\r]", cell) for row in rows for cell in row)
        else:
            assert_harmless(out)
            assert out.isprintable() or "\n" in out


def test_file_names(tmp_path):
    """Of the file itself."""
    for name in ("a\x1b[2Jb\n.tare", "\u202ex.tare", "-x.tare", "%s%n.tare", "a,b\"c.tare"):
        trace = tmp_path / name
        shutil.copy(GOLDEN / "v1" / "small.tare", trace)
        for what, command in COMMANDS.items():
            out, err = run(command, "--", trace)
            assert_harmless(err)
            if "JSON" not in what and "CSV" not in what:
                assert_harmless(out)
        _, err = run(["info"], tmp_path / f"no {name}", statuses=(2,))
        assert_harmless(err)


def test_large_numbers(build, tmp_path):
    """64 bits are printed in full."""
    trace, most = tmp_path / "large.tare", 2**64 - 1
    records = [build.record("FUNCTION", 1, 3, "cudaMalloc", "x"), build.record(*CODE)]
    events = [(1, "FRAME", 1, 0, 0), (1, "MEMORY", 1, 0, most, most), (1, "RESULT", most), (1, "LEAVE", most)]
    trace.write_bytes(start(build) + build.definitions(records) + build.events(1, events))
    out, _ = run(["dump", "--events", "--format", "json"], trace)
    lines = [json.loads(line) for line in out.splitlines()]
    memory = next(line for line in lines if line["event"] == "MEMORY")
    assert memory["pointer"] == memory["bytes"] == most
    for command in COMMANDS.values():
        run(command, trace)


TIMES = {
    "far": [(2**56 - 1, "FRAME", 1, 0, 0), (2**55, "LEAVE", 0), (1, "FRAME", 1, 0, 0)],
    "overflow": [(2**63, "FRAME", 1, 0, 0), (2**63 - 1, "LEAVE", 0), (2**63, "FRAME", 1, 0, 0), (9, "LEAVE", 0)],
    "none": [(0, "FRAME", 1, 0, 0), (0, "LEAVE", 0)] * 50,
}


@pytest.mark.parametrize("first", [0, 5, 1000, 2**63, 2**64 - 2])
@pytest.mark.parametrize("case", TIMES)
def test_times(build, tmp_path, case, first):
    """Also backwards, from one block to the next, and clocks without sense."""
    trace = tmp_path / "times.tare"
    blocks = b"".join(
        build.events(1, TIMES[case], block=block, first_time=time) for block, time in enumerate((first, 7, first))
    )
    clocks = {"opened": (first, 2**64 - 1 - first), "load": (2**64 - 1, 3)}
    for more in ({}, {**clocks, "clock": 1, "shift": 63}):
        trace.write_bytes(start(build, **more) + build.definitions([build.record(*CODE)]) + blocks)
        for name in ("report", "report in JSON", "syncs", "info in JSON", "dump in JSON"):
            out, _ = run(COMMANDS[name], trace)
            if "JSON" in name:
                for line in out.rstrip("\n").split("\n") if "dump" in name else [out]:
                    json.loads(line, parse_constant=pytest.fail)


# -------------------------------------------------------------------------------- files


def make_fifo(path):
    os.mkfifo(path)


def make_loop(path):
    path.symlink_to(path)


def make_sparse(path):
    with path.open("wb") as file:
        file.truncate(1 << 40)


FILES = {
    "empty": (lambda path: path.write_bytes(b""), "empty"),
    "missing": (lambda path: None, "No such file"),
    "folder": (lambda path: path.mkdir(), "no traces"),
    "FIFO": (make_fifo, "not a tare trace"),
    "loop": (make_loop, "[Ss]ymbolic link"),
    "zeros": (make_sparse, "not a tare trace"),
    "text": (lambda path: path.write_text("hello\n" * 9), "not a tare trace"),
}


@pytest.mark.parametrize("case", FILES)
def test_no_traces(tmp_path, case):
    make, message = FILES[case]
    path = tmp_path / "x.tare"
    make(path)
    for command in COMMANDS.values():
        _, err = run(command, path, statuses=(2,))
        assert str(path) in err and re.search(message, err)


def test_unreadable(tmp_path):
    path = tmp_path / "x.tare"
    shutil.copy(GOLDEN / "v1" / "small.tare", path)
    path.chmod(0)
    if os.access(path, os.R_OK):
        pytest.skip("root reads everything")
    for command in COMMANDS.values():
        assert "Permission denied" in run(command, path, statuses=(2,))[1]


def test_devices():
    for path in ("/dev/null", "/dev/zero", "/dev/tty", "/proc/self/mem"):
        for command in ("report", "info", "dump"):
            assert path in run(COMMANDS[command], path, statuses=(2,))[1]


def test_many_zeros_behind_a_trace(tmp_path):
    """A file that claims to be large, of which next to nothing is there."""
    trace = tmp_path / "sparse.tare"
    shutil.copy(GOLDEN / "v1" / "small.tare", trace)
    with trace.open("r+b") as file:
        file.truncate(1 << 28)
    for command in ("report in JSON", "info in JSON", "dump in JSON"):
        assert "cut off or damaged" in run(COMMANDS[command], trace)[1]


@pytest.mark.parametrize("command", ["report in JSON", "dump in JSON", "syncs"])
def test_changes_while_read(tmp_path, command):
    """Cut, and grown again: what is read may be little, but no signal ends it."""
    whole = (GOLDEN / "v1" / "blocks.tare").read_bytes()
    trace = tmp_path / "changing.tare"
    trace.write_bytes(whole)
    over = threading.Event()

    def change():
        step = 0
        while not over.is_set():
            step += 1
            with trace.open("r+b") as file:
                file.truncate(12288 + step * 7919 % (len(whole) - 12288))
                file.seek(0)
                file.write(whole[: len(whole) if step % 3 else len(whole) // 2])

    changer = threading.Thread(target=change)
    changer.start()
    try:
        for _ in range(15):
            run(COMMANDS[command], trace, statuses=(0, 1, 2))
    finally:
        over.set()
        changer.join()


def cut_everywhere(tmp_path, step):
    whole = (GOLDEN / "v1" / "small-live.tare").read_bytes()
    trace = tmp_path / "cut.tare"
    commands = list(COMMANDS.values())
    for number, length in enumerate(range(0, len(whole), step)):
        trace.write_bytes(whole[:length])
        _, err = run(commands[number % len(commands)], trace, statuses=(0, 1) if length >= 8192 else (2,))
        assert len(err.splitlines()) <= 2


def test_cut(tmp_path):
    cut_everywhere(tmp_path, 61)


@pytest.mark.slow
def test_cut_everywhere(tmp_path):
    cut_everywhere(tmp_path, 1)


# -------------------------------------------------------------------------------- folders and options


def test_mixed_folder(tmp_path):
    """What can be read is; what cannot is told, a line each."""
    folder = tmp_path / "run"
    folder.mkdir()
    for name in ("finished", "small", "gpu", "unfinished"):
        shutil.copy(GOLDEN / "v1" / f"{name}.tare", folder)
    for name in ("newer", "text", "empty", "cut-frame"):
        shutil.copy(GOLDEN / "bad" / f"{name}.tare", folder)
    (folder / "notes.txt").write_text("none of ours")
    (folder / "sub.tare").mkdir()
    for command in COMMANDS.values():
        done = subprocess.run([TARE, *command, folder], capture_output=True, text=True, timeout=60)
        assert done.returncode in (0, 1, 2) and done.stdout
        told = [line for line in done.stderr.splitlines() if "warning" not in line]
        assert {re.search(r"([\w-]+)\.tare", line)[1] for line in told} == {"newer", "text", "empty", "sub"}


ODD = [
    ["report", "--top", "-1"], ["report", "--top", "9" * 30], ["report", "--top", "1e3"], ["report", "--loop", "x"],
    ["report", "--loop", ":"], ["report", "--loop", "a.py:" + "9" * 30], ["report", "--loop", ":1"],
    ["ops", "--by", ""], ["ops", "--by", ","], ["ops", "--by", "op,,site"], ["ops", "--sort", ""],
    ["ops", "--by", "op," * 1000 + "x"], ["report", "--pid", "-5"], ["report", "--rank", "9" * 25],
    ["report", "--pid", "1"], ["syncs", "--max-per-pass", "x"], ["syncs", "--max-per-pass", "-1"],
    ["syncs", "--max-per-pass", "nan"], ["syncs", "--fail-on", ""], ["syncs", "--fail-on", "hot,"],
    ["syncs", "--allow", "/nowhere"], ["syncs", "--allow", "/"], ["syncs", "--baseline", "/nowhere"],
    ["syncs", "--baseline", ""], ["dump", "--thread", "-1"], ["dump", "--thread", "x"], ["info", "--format", ""],
    ["info", "--format", "JSON"], ["report", ""], ["nothing"], ["report", "--" + "x" * 5000],
]  # fmt: skip


@pytest.mark.parametrize("odd", ODD, ids=lambda odd: " ".join(odd)[:40])
def test_odd_options(odd):
    run(odd, GOLDEN / "v1" / "small.tare", statuses=(2,))


FINE = [
    ["report", "--top", "0"], ["report", "--top", "2147483648"], ["ops", "--by", "op,op"], ["ops", "--by", "thread"],
    ["syncs", "--allow", "/dev/null"], ["syncs", "--max-per-pass", "1e300"], ["syncs", "--max-per-pass", "inf"],
    ["report", "--format", "json", "--format", "text"], ["dump", "--events", "--records"],
]  # fmt: skip


@pytest.mark.parametrize("fine", FINE, ids=" ".join)
def test_unusual_options(fine):
    assert run(fine, GOLDEN / "v1" / "small.tare")[0]


@pytest.mark.parametrize("columns", ["0", "-1", "1", "99999999999999999999", "x"])
def test_odd_widths(columns):
    for command in COMMANDS.values():
        done = subprocess.run(
            [TARE, *command, GOLDEN / "v1" / "gpu.tare"], capture_output=True,
            env={**clean_environment({}), "COLUMNS": columns},
        )  # fmt: skip
        assert done.returncode in (0, 1) and done.stdout


@pytest.mark.parametrize("command", COMMANDS)
def test_output_that_cannot_be_written(command):
    with open("/dev/full", "w") as full:
        done = subprocess.run(
            [TARE, *COMMANDS[command], GOLDEN / "v1" / "small.tare"], stdout=full, stderr=subprocess.PIPE, text=True
        )
    assert done.returncode == 2
    assert done.stderr.splitlines()[-1] == "tare: the output could not be written: No space left on device"
