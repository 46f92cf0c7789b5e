"""Traces of earlier versions read as they did; bad ones fail, or read in part, with one clear line."""

import collections
import json
import re
import subprocess

import pytest
from conftest import BUILD, ROOT, TARE

GOLDEN = ROOT / "tests" / "golden"


def tare(*args, status=0):
    done = subprocess.run([TARE, *map(str, args)], check=False, capture_output=True, timeout=60)
    assert done.returncode == status, done.stderr.decode()
    # Always text, whatever is in the trace.
    return done.stdout.decode(), done.stderr.decode()


def dump_lines(trace, *args):
    return [
        json.loads(line) for line in tare("dump", "--format", "json", *args, trace)[0].splitlines()
    ]


def info(trace):
    return json.loads(tare("info", "--format", "json", trace)[0])["traces"][0]


def generate(path, *args):
    command = [BUILD / "tests" / "tare_gen", path, *map(str, args)]
    return json.loads(subprocess.run(command, check=True, capture_output=True).stdout)


@pytest.mark.parametrize("name", ["finished", "unfinished", "small", "small-live", "stacks", "calibrated", "gpu"])
def test_reads_as_ever(name):
    text = (GOLDEN / "v1" / f"{name}.jsonl").read_text()
    expected = [json.loads(line) for line in text.splitlines()]
    lines = dump_lines(GOLDEN / "v1" / f"{name}.tare")
    found = [line for line in lines if "coverage" not in line]
    assert len(found) == len(expected)
    # What is missing is the last line.
    lost = [line for line in expected if line.get("record") == "LOST"]
    assert len(lines) == len(found) + bool(lost) and (not lost or "coverage" in lines[-1])
    for number, (new, old) in enumerate(zip(found, expected)):
        assert {key: new.get(key) for key in old} == old, f"line {number + 1}"


def check_counts(lines, counts):
    events = [line for line in lines if "event" in line]
    own = sum(line["event"] == "TARE" for line in events)
    kinds = collections.Counter(line["event"] for line in events)
    kinds["LEAVE"] -= own
    del kinds["TARE"]
    assert dict(kinds) == counts["events"]
    codes = {line["code"]: line for line in lines if line.get("record") == "CODE"}
    frames = collections.Counter(
        f"{codes[line['code']]['file']} {codes[line['code']]['name']}"
        for line in events
        if line["event"] == "FRAME"
    )
    assert dict(frames) == counts["frames"]
    for member, key in (
        ("ops", "op_symbol"),
        ("functions", "function_name"),
        ("nodes", "type_name"),
    ):
        names = collections.Counter(line[key] for line in events if key in line)
        assert dict(names) == counts[member]
    for thread in counts["threads"]:
        assert sum(line["thread"] == thread["thread"] for line in events) >= thread["events"]
    times = [line["time_ns"] for line in events]
    assert times == sorted(times)


def test_counts():
    counts = json.loads((GOLDEN / "v1" / "blocks.json").read_text())
    check_counts(dump_lines(GOLDEN / "v1" / "blocks.tare"), counts)


def test_everything_is_golden():
    """A new event or record wants a golden trace with it."""
    schema = (ROOT / "traces" / "schema.def").read_text()
    events = set(re.findall(r"^\s+EVENT\(\d+, +(\w+)", schema, re.MULTILINE))
    records = set(re.findall(r"^\s+RECORD\(\d+, +(\w+)", schema, re.MULTILINE))
    assert len(events) > 20 and len(records) > 10
    for trace in (GOLDEN / "v1").glob("*.tare"):
        for line in dump_lines(trace):
            events.discard(line.get("event"))
            records.discard(line.get("record"))
    assert not events and not records


def test_nesting():
    """`level` counts the open spans, and a leave names what it leaves."""
    lines = [
        line for line in dump_lines(GOLDEN / "v1" / "finished.tare") if line.get("thread") == 1
    ]
    opened = []
    for line in lines:
        if "event" not in line:
            continue
        if line["event"] == "LEAVE":
            while opened[-1][0] in ("OP",):
                opened.pop()
            kind, start = opened.pop()
            assert line["of"] == kind
            assert line["duration_ns"] == line["time_ns"] - start
        elif line["event"] == "LEAVE_TO":
            while sum(kind != "OP" for kind, _ in opened) > line["depth"]:
                opened.pop()
        elif line["event"] in ("OP", "OP_OVER"):
            for _ in range(line["over"] if line["event"] == "OP" else line["count"]):
                assert opened.pop()[0] == "OP"
        assert line["level"] == len(opened)
        if line["event"] in (
            "RESULT",
            "DEVICE",
            "MADE",
            "AT",
            "RANGE_BEGIN",
            "RANGE_END",
            "OP_OVER",
        ):
            continue
        if not line["event"].startswith("LEAVE"):
            opened.append((line["event"], line["time_ns"]))
    assert not opened


def test_text():
    trace = GOLDEN / "v1" / "finished.tare"
    text, _ = tare("dump", trace)
    lines = text.splitlines()
    assert len(lines) == len(dump_lines(trace))
    # Control characters never reach the terminal.
    assert 'STRING string=1 text=évaluation "a"\\t\\n' in lines
    assert re.search(r"^ +\d+ ns  t1 +    FRAME code=\d+:\w+", text, re.MULTILINE)
    assert re.search(r"LEAVE result=0  \(LAUNCH cudaLaunchKernel, \d+ ns\)$", text, re.MULTILINE)


def test_selection():
    trace = GOLDEN / "v1" / "finished.tare"
    everything = dump_lines(trace)
    records = dump_lines(trace, "--records")
    events = dump_lines(trace, "--events")
    assert all("record" in line for line in records)
    assert records + events == everything
    assert dump_lines(trace, "--events", "--thread", 2) == [
        line for line in events if line["thread"] == 2
    ]
    assert "no thread 99" in tare("dump", "--thread", 99, trace, status=2)[1]


def test_several_files():
    first, second = GOLDEN / "v1" / "finished.tare", GOLDEN / "v1" / "unfinished.tare"
    out, _ = tare("dump", "--format", "json", "--events", first, second)
    lines = [json.loads(line) for line in out.splitlines()]
    assert [line["file"] for line in lines if "file" in line] == [str(first), str(second)]
    folder, _ = tare("dump", "--events", GOLDEN / "v1")
    titles = [line for line in folder.splitlines() if line.startswith("== ")]
    assert titles == [f"== {path}" for path in sorted((GOLDEN / "v1").glob("*.tare"))]


def test_info():
    found = info(GOLDEN / "v1" / "finished.tare")
    assert found["format"] == 1
    assert found["ended"] == "exit" and found["stopped"] is None
    assert not found["truncated"] and found["lost"] == 0
    assert found["info"]["python"] == "3.9.18"
    assert {layer["layer"]: layer["state"] for layer in found["layers"]} == {
        "frames": "on",
        "ops": "on",
        "cuda": "on",
        "gpu": "off",
    }
    assert [thread["name"] for thread in found["threads"]] == [
        "python",
        "pt_autograd_0",
        "worker-2",
    ]
    assert found["events"] == sum(thread["events"] for thread in found["threads"])
    assert found["events"] == sum(found["events_by_kind"].values())
    assert found["unit_ns"] == 1.0

    found = info(GOLDEN / "v1" / "unfinished.tare")
    assert found["ended"] is None and not found["truncated"]
    assert found["lost"] == 5
    assert found["losses"] == [{"thread": 1, "events": 5, "reason": "as was asked for"}]
    assert found["live_events"] == found["events"] > 0
    text, _ = tare("info", GOLDEN / "v1" / "unfinished.tare")
    assert "ended     killed, or still running\n" in text
    assert "5 of thread 1: as was asked for\n" in text


def test_stopped(tmp_path):
    counts = generate(tmp_path / "a.tare", "--spans", 200000, "--max-bytes", 500000)
    found = info(tmp_path / "a.tare")
    assert found["stopped"] == "TARE_MAX_BYTES was reached"
    assert found["bytes"] <= 500000
    assert 0 < found["spans"] < counts["spans"]
    assert not found["truncated"]


BAD = {
    "empty": (2, r"empty: nothing was recorded, or it was not copied"),
    "text": (2, r"not a tare trace"),
    "cut-header": (2, r"header is damaged or cut off"),
    "cut-descriptor": (2, r"header is damaged or cut off"),
    "flipped-header": (2, r"header is damaged or cut off"),
    "newer": (2, r"written by a newer tare \(format 2, this one reads up to 1\)"),
    "cut-live": (0, r"cut off or damaged"),
    "cut-frame": (0, r"cut off or damaged"),
    "flipped-frame": (0, r"cut off or damaged"),
    "flipped-descriptor": (0, r"cut off or damaged"),
}


def test_all_bad_are_tried():
    assert {path.stem for path in (GOLDEN / "bad").iterdir()} == set(BAD)


@pytest.mark.parametrize("command", ["dump", "info", "report", "ops"])
@pytest.mark.parametrize("name", BAD)
def test_bad(command, name):
    status, message = BAD[name]
    trace = GOLDEN / "bad" / f"{name}.tare"
    out, err = tare(command, trace, status=status)
    assert len(err.splitlines()) == 1
    assert err.startswith(f"tare: {'warning: ' if status == 0 else ''}{trace}: ")
    assert re.search(message, err)
    assert bool(out) == (status == 0)


def test_bad_says_how():
    damage = {"skipped_bytes", "damaged_frames", "missing_blocks", "cut_bytes"}
    expected = {
        "cut-live": {"cut_bytes"},
        "cut-frame": {"cut_bytes"},
        "flipped-frame": {"skipped_bytes", "damaged_frames"},
        "flipped-descriptor": {"skipped_bytes"},
    }
    for name, kinds in expected.items():
        found = info(GOLDEN / "bad" / f"{name}.tare")
        assert found["truncated"]
        assert {kind for kind in damage if found[kind]} == kinds, name


@pytest.mark.parametrize("command", ["dump", "info"])
def test_wrong_usage(command, tmp_path):
    (tmp_path / "folder").mkdir()
    for args in (
        [],
        [tmp_path / "none.tare"],
        [tmp_path / "folder"],
        ["--nonsense", "a"],
        ["--format"],
        ["--format", "xml", "a"],
        ["/dev/null"],
    ):
        out, err = tare(command, *args, status=2)
        assert not out and err.startswith("tare: ") and len(err.splitlines()) == 1
    out, _ = tare(command, "--help")
    assert out.startswith(f"Usage: tare {command}")


def test_one_bad_among_good():
    good, bad = GOLDEN / "v1" / "finished.tare", GOLDEN / "bad" / "text.tare"
    out, err = tare("info", "--format", "json", bad, good, status=2)
    assert [trace["file"] for trace in json.loads(out)["traces"]] == [str(good)]
    assert "not a tare trace" in err


@pytest.mark.parametrize("name", ["finished", "unfinished"])
def test_cut_anywhere(name, tmp_path):
    """Cut at every 1000th byte, it reads as far as it goes."""
    whole = (GOLDEN / "v1" / f"{name}.tare").read_bytes()
    path = tmp_path / "cut.tare"
    all_events = info(GOLDEN / "v1" / f"{name}.tare")["events"]
    for length in range(0, len(whole), 1000):
        path.write_bytes(whole[:length])
        done = subprocess.run(
            [TARE, "info", "--format", "json", path], check=False, capture_output=True
        )
        assert len(done.stderr.splitlines()) <= 1
        if done.returncode == 0:
            found = json.loads(done.stdout)["traces"][0]
            assert 0 <= found["events"] <= all_events
            assert length >= 12288
        else:
            assert done.returncode == 2 and length < 12288
