"""`tare syncs` as a gate, on the traces of one program with waits of several kinds."""

import json
import os
import subprocess

import pytest
from conftest import PROG, TARE

pytest.importorskip("torch")


@pytest.fixture(scope="module")
def traces(tmp_path_factory, trace_on_device):
    """traces["new"], traces["old"]: folders; the old one lacks a wait in each step."""
    return {
        name: trace_on_device(tmp_path_factory.mktemp(name), PROG / "syncs_gate.py", name)
        for name in ("new", "old")
    }


def gate(*arguments):
    env = {**os.environ, "COLUMNS": "120"}
    return subprocess.run([TARE, "syncs", *arguments], capture_output=True, text=True, env=env)


def gate_json(*arguments):
    return json.loads(gate("--format", "json", *arguments).stdout)["gate"]


def lines_of(text):
    source = (PROG / "syncs_gate.py").read_text().splitlines()
    return next(i for i, line in enumerate(source, 1) if text in line)


def test_nothing_asked(traces):
    done = gate(traces["new"])
    assert done.returncode == 0
    assert "the gate" not in done.stdout


def test_fail_on(traces):
    new = traces["new"]
    assert gate("--fail-on", "hot", new).returncode == 1
    assert gate("--fail-on", "unknown", new).returncode == 0
    assert gate("--fail-on", "explicit", new).returncode == 1
    assert gate("--fail-on", "by-design", new).returncode == 0
    assert gate("--fail-on", "host-to-device", new).returncode == 0
    found = gate_json("--fail-on", "hot,periodic", new)
    assert not found["passed"]
    sites = {(one["site"], one["kind"], one["class"]) for one in found["failed"]}
    assert sites == {
        (f"syncs_gate.py:{lines_of('loss.item()')}", "scalar-read", "hot"),
        (f"syncs_gate.py:{lines_of('x[x > 0]')}", "size-read", "hot"),
        (f"syncs_gate.py:{lines_of('print(')}", "scalar-read", "periodic"),
    }
    done = gate("--fail-on", "periodic", new)
    assert done.returncode == 1
    assert "the gate failed" in done.stdout and "periodic" in done.stdout


def test_max_per_pass(traces):
    new = traces["new"]
    assert gate("--max-per-pass", "2.2", new).returncode == 0
    done = gate("--max-per-pass", "2", new)
    assert done.returncode == 1
    assert "2.10 a pass, where 2.00 are allowed" in done.stdout
    assert gate("--max-per-pass", "0", traces["old"]).returncode == 1


def test_allow(traces, tmp_path):
    allow = tmp_path / "allow.txt"
    item = lines_of("loss.item()")
    allow.write_text(f"# known\n\nsyncs_gate.py:{item}  the loss is logged\n*_gate.py:select\tlater\n")
    done = gate("--fail-on", "hot", "--allow", allow, traces["new"])
    assert done.returncode == 0 and done.stderr == ""
    assert gate("--max-per-pass", "0.2", "--allow", allow, traces["new"]).returncode == 0
    allow.write_text("gone.py:3 no longer there\n")
    done = gate("--fail-on", "hot", "--allow", allow, traces["new"])
    assert done.returncode == 1
    assert "allow.txt:1: 'gone.py:3'" in done.stderr
    assert gate_json("--allow", allow, traces["new"])["unused_allowances"] == ["gone.py:3"]


def test_baseline(traces):
    new, old = traces["new"], traces["old"]
    assert gate("--fail-on", "hot,periodic", "--baseline", old, old).returncode == 0
    found = gate_json("--fail-on", "hot,periodic", "--baseline", old, new)
    assert [one["kind"] for one in found["failed"]] == ["size-read"]
    assert gate("--fail-on", "hot,periodic", "--baseline", new, old).returncode == 0


def test_baseline_of_moved_code(traces, tmp_path, trace_on_device):
    """Lines and folders of a known wait may change."""
    moved = tmp_path / "syncs_gate.py"
    source = (PROG / "syncs_gate.py").read_text()
    moved.write_text(source.replace("def step(w, x):", "# moved\n\n\ndef step(w, x):\n    # further"))
    trace_on_device(tmp_path, moved, "new")
    done = gate("--fail-on", "hot,periodic,explicit", "--baseline", traces["new"], tmp_path)
    assert done.returncode == 0, done.stdout
    done = gate("--fail-on", "hot", "--baseline", traces["old"], tmp_path)
    assert done.returncode == 1 and done.stdout.split("the gate failed")[1].count("size-read") == 1
    assert "decides nothing" in gate("--baseline", traces["old"], tmp_path).stderr


@pytest.mark.parametrize(
    "arguments",
    [
        ("--fail-on", "hit"),
        ("--fail-on", ""),
        ("--max-per-pass", "-1"),
        ("--max-per-pass", "many"),
        ("--allow", "/nowhere/allow"),
        ("--allow", "/"),
        ("--baseline", "/nowhere/old.tare"),
        ("--loop", "train.py"),
        ("--top", "x"),
    ],
)
def test_wrong_usage(traces, arguments):
    done = gate(*arguments, traces["new"])
    assert done.returncode == 2
    assert done.stdout == "" and done.stderr.count("\n") == 1


def test_formats(traces):
    csv = gate("--format", "csv", traces["new"]).stdout.splitlines()
    assert csv[0].startswith("kind,op,call,bytes,site.file")
    assert len(csv) > 4
    text = gate(traces["new"]).stdout
    assert "explicit: the program asks for it" in text and "device-sync" in text
    assert max(map(len, text.splitlines())) <= 120


def test_without_frames_no_loop_is_known(traces, tmp_path, trace_on_device):
    trace_on_device(tmp_path, PROG / "syncs_gate.py", "new", env={"TARE_LAYERS": "cuda"})
    found = json.loads(gate("--format", "json", tmp_path).stdout)["findings"]
    assert found and all(one["class"] == "unknown" for one in found if one["count"] > 1)
