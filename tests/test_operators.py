"""
Operators, native sections, backward nodes and user ranges: what the taps saw against what
RecordFunction reports for the same program, and against what the program does.
"""

import collections
import dataclasses
import re
import subprocess

import pytest
from conftest import LIBTARE

pytest.importorskip("torch")

OPS = {"TARE_LAYERS": "ops,cuda"}
ORACLE = {"TARE_LAYERS": "ops-rf,cuda"}
SPANS = {"SECTION", "CALLBACK", "GIL", "FRAME", "NODE", "OP_SPAN", "TARE"}
CALLS = {"CALL", "LAUNCH", "COPY", "SET", "MEMORY", "SYNC"}


def operator_name(symbol):
    """One name for the symbol at::_ops::NAME_OVERLOAD::call and for the name "aten::NAME.OVERLOAD"."""
    match = re.match(r"_ZN2at4_ops(\d+)", symbol)
    if match:
        return "aten::" + symbol[match.end() :][: int(match[1])]
    return symbol.replace(".", "_")


@dataclasses.dataclass
class Open:
    kind: str
    index: int = -1  # of the operator, in Replay.ops
    event: dict = None


class Replay:
    """One thread's events as a reader sees them: what is open, and so what each event is in."""

    def __init__(self, symbols):
        self.symbols = symbols
        self.open = []
        self.ops = []  # (name, index of the operator around it, or -1)
        self.calls = []  # (name of the function, name of the operator around it)
        self.nodes = []
        self.sections = 0
        self.unseen_leaves = 0
        self.ranges = 0
        self.deepest_range = 0

    def around(self):
        return next((entry.index for entry in reversed(self.open) if entry.index >= 0), -1)

    def close_ops(self, count):
        for _ in range(count):
            assert self.open and self.open[-1].kind == "OP", "no operator is open in this span"
            self.open.pop()

    def close_span(self):
        while self.open and self.open[-1].kind == "OP":
            self.open.pop()
        return self.open.pop() if self.open else None

    def depth(self):
        return sum(entry.kind != "OP" for entry in self.open)

    def add(self, event):
        kind = event["event"]
        if kind == "OP":
            self.close_ops(event["over"])
        if kind in ("OP", "OP_SPAN"):
            self.ops.append((operator_name(self.symbols[event["op"]]), self.around()))
            self.open.append(Open(kind, len(self.ops) - 1, event))
        elif kind == "OP_OVER":
            self.close_ops(event["count"])
        elif kind == "LEAVE":
            self.close_span()
        elif kind == "LEAVE_TO":
            self.unseen_leaves += 1
            while self.depth() > event["depth"]:
                self.close_span()
        elif kind in CALLS:
            around = self.around()
            self.calls.append((event["function"], self.ops[around][0] if around >= 0 else None))
            self.open.append(Open(kind))
        elif kind in SPANS:
            self.sections += kind == "SECTION"
            if kind == "NODE":
                self.nodes.append(event)
            self.open.append(Open(kind, event=event))
        elif kind == "RANGE_BEGIN":
            self.ranges += 1
            self.deepest_range = max(self.deepest_range, self.ranges)
        elif kind == "RANGE_END":
            self.ranges -= 1
            assert self.ranges >= 0


def replay(dumped):
    """{thread: Replay}."""
    symbols = {record["op"]: record["symbol"] for record in dumped.records("OP")}
    threads = collections.defaultdict(lambda: Replay(symbols))
    for event in dumped.events():
        threads[event["thread"]].add(event)
    return dict(threads)


def by_work(threads):
    """The threads that ran operators, in an order that does not depend on their numbers."""
    busy = [thread for thread in threads.values() if thread.ops]
    return sorted(busy, key=lambda thread: (len(thread.ops), thread.ops))


def layers(dumped):
    return {record["layer"]: record["state"] for record in dumped.records("LAYER")}


def without_unobserved(thread):
    """RecordFunction is not told of the operators that make and end its own user ranges."""
    kept, index = [], {-1: -1}
    for i, (name, parent) in enumerate(thread.ops):
        if name.startswith("profiler::"):
            index[i] = index[parent]
        else:
            index[i] = len(kept)
            kept.append((name, index[parent]))
    return kept


def assert_like_oracle(tapped, oracle):
    """The same operators in the same order; in the same operator at least 98 % of the nested ones and of
    the CUDA calls."""
    tapped, oracle = by_work(replay(tapped)), by_work(replay(oracle))
    assert len(tapped) == len(oracle)
    nested = right = calls = right_calls = 0
    for ours, theirs in zip(tapped, oracle):
        assert ours.unseen_leaves == theirs.unseen_leaves == 0
        ours_ops = without_unobserved(ours)
        assert [name for name, _ in ours_ops] == [name for name, _ in theirs.ops]
        for (_, parent), (_, expected) in zip(ours_ops, theirs.ops):
            if parent >= 0 or expected >= 0:
                nested += 1
                right += parent == expected
        assert [name for name, _ in ours.calls] == [name for name, _ in theirs.calls]
        for (_, around), (_, expected) in zip(ours.calls, theirs.calls):
            calls += 1
            right_calls += around == expected
    assert right >= 0.98 * nested, f"{nested - right} of {nested} nested operators in another one"
    assert right_calls >= 0.98 * calls, f"{calls - right_calls} of {calls} calls in another operator"
    return nested, calls


def assert_nodes_were_made(dumped):
    """What MADE tells on the thread that made a node is what NODE tells where it is evaluated."""
    torch_thread = {r["thread"]: r["torch_thread"] for r in dumped.records("TORCH_THREAD")}
    made = {
        (torch_thread[event["thread"]], event["sequence"] + i)
        for event in dumped.events("MADE")
        for i in range(event["count"])
    }
    nodes = dumped.events("NODE")
    numbered = {(node["torch_thread"], node["sequence"] - 1) for node in nodes if node["sequence"]}
    assert len(numbered) > 100 and numbered <= made
    others = {node["type_name"] for node in nodes if not node["sequence"]}
    assert others and all("AccumulateGrad" in name for name in others)


PROGRAMS = ["training", "shapes", "hooks", "custom", "subclass", "checkpoint"]


def test_same_operators_as_record_function(run_bare_and_traced, run_traced, dump, program, python):
    command = [python, program("torch_all.py"), "cpu", *PROGRAMS]
    tapped = dump(run_bare_and_traced(command, returncode=0, trace_env=OPS).trace)
    oracle = dump(run_traced(command, trace_env=ORACLE).trace)
    assert layers(tapped)["ops.tap"] == layers(tapped)["ops.section"] == 1
    assert layers(tapped)["ops.node"] == layers(tapped)["ops.range"] == 1
    assert "ops.tap" not in layers(oracle) and layers(oracle)["ops.record_function"] == 1
    assert not tapped.events("OP_SPAN") and not oracle.events("OP")
    nested, _ = assert_like_oracle(tapped, oracle)
    assert nested > 3000
    assert_nodes_were_made(tapped)
    assert_nodes_were_made(oracle)
    types = {record["name"] for record in tapped.records("NODE_TYPE")}
    assert {"14SquareBackward", "14BrokenBackward"} <= types  # classes of Python


def test_same_operators_on_a_device(sim, run_bare_and_traced, run_traced, dump, program, python):
    command = sim([python, program("torch_all.py"), "cuda", *PROGRAMS])
    tapped = dump(run_bare_and_traced(command, returncode=0, trace_env=OPS).trace)
    oracle = dump(run_traced(command, trace_env=ORACLE).trace)
    nested, calls = assert_like_oracle(tapped, oracle)
    assert nested > 2000 and calls > 500
    assert len({event["thread"] for event in tapped.events("NODE")}) == 1  # autograd's own
    assert_nodes_were_made(tapped)


@pytest.mark.slow
def test_frames_around_operators(run_bare_and_traced, run_traced, dump, program, python):
    """With the frame layer the same holds, and nothing of one frame is open in another."""
    command = [python, program("torch_all.py"), "cpu", *PROGRAMS]
    tapped = dump(run_bare_and_traced(command, trace_env={"TARE_LAYERS": "frames,ops"}).trace)
    oracle = dump(run_traced(command, trace_env={"TARE_LAYERS": "frames,ops-rf"}).trace)
    assert_like_oracle(tapped, oracle)


def count(thread):
    return collections.Counter(name for name, _ in thread.ops)


def test_counts(run_bare_and_traced, dump, program, python):
    import torch

    run = run_bare_and_traced([python, program("torch_counts.py")], returncode=0, trace_env=OPS)
    dumped = dump(run.trace)
    short, long, main = by_work(replay(dumped))
    for thread, turns in ((short, 50), (long, 70)):
        known = ("sinh", "neg", "cosh", "tan")
        assert count(thread) == {f"aten::{name}": turns for name in known}
        assert thread.sections >= 4 * turns
    ops = count(main)
    assert ops["aten::sinh"] == ops["aten::tan"] == 100
    assert ops["aten::atan"] == 30
    assert ops["aten::select_int"] == 2 * 40 and ops["aten::slice_Tensor"] == 40
    assert len(main.nodes) == 3 * 30
    assert not dumped.records("LOST")
    names = {record["name"] for record in dumped.records("NODE_TYPE")}
    assert any("AtanBackward0" in name for name in names)
    info = {record["key"]: record["value"] for record in dumped.records("INFO")}
    assert info["torch"] == torch.__version__


def test_user_ranges(run_bare_and_traced, dump, program, python):
    run = run_bare_and_traced([python, program("torch_ranges.py")], returncode=0, trace_env=OPS)
    dumped = dump(run.trace)
    threads = [thread for thread in replay(dumped).values() if thread.deepest_range]
    assert len(threads) == 2
    assert all(thread.ranges == 0 and thread.deepest_range == 2 for thread in threads)
    begins = collections.Counter(event["name_text"] for event in dumped.events("RANGE_BEGIN"))
    assert begins["main"] == begins["other"] == 4
    assert begins["main/3"] == begins["other/raises"] == 1
    assert len(dumped.events("RANGE_END")) == sum(begins.values()) == 2 * 9


@pytest.mark.parametrize("first, how", [(5, "by its operators"), (5000, "by RecordFunction")])
def test_names_of_ranges(run_bare_and_traced, dump, program, python, first, how):
    """A first name that is too long to be known as a text: then torch's callback tells them all."""
    run = run_bare_and_traced([python, program("torch_range_names.py"), first], returncode=0, trace_env=OPS)
    dumped = dump(run.trace)
    details = {record["layer"]: record["detail"] for record in dumped.records("LAYER")}
    assert details["ops.range"] == f"record_function, {how}"
    begins = collections.Counter(event["name_text"] for event in dumped.events("RANGE_BEGIN"))
    for name in ("f" * first, "", "\u00fcber \u2207", "new\nline", "l" * 5000, "with arguments"):
        assert begins[name] == 1, name
    assert begins["scripted"] == 3 and begins["decorated"] == 3
    assert len(dumped.events("RANGE_END")) == sum(begins.values())


def test_exception_ends_the_program(run_bare_and_traced, dump, program, python):
    run = run_bare_and_traced([python, program("torch_raises.py")], returncode=1, trace_env=OPS)
    ops = sum((count(thread) for thread in replay(dump(run.trace)).values()), collections.Counter())
    assert ops["aten::matmul"] == 6 and ops["aten::add_Tensor"] == 5


def test_no_operators_without_their_layer(run_traced, count_events, program, python):
    run = run_traced([python, program("torch_raises.py")], trace_env={"TARE_LAYERS": "frames"})
    threads = count_events(run.trace)["threads"].values()
    events = sum(map(collections.Counter, threads), collections.Counter())
    assert events["FRAME"] > 1000
    for name in ("OP", "OP_SPAN", "SECTION", "NODE", "CALLBACK", "RANGE_BEGIN"):
        assert not events[name]


def test_waits_for_the_gil(run_bare_and_traced, dump, program, python):
    run = run_bare_and_traced([python, program("torch_gil.py")], trace_env=OPS)
    dumped = dump(run.trace)
    main = max(replay(dumped).values(), key=lambda thread: thread.sections)
    assert main.unseen_leaves == 0 and count(main)["aten::exp"] == 60
    assert dumped.events("GIL")


def test_forked_child(run_bare_and_traced, dump, program, python):
    run = run_bare_and_traced([python, program("torch_fork.py")], returncode=0, trace_env=OPS)
    assert len(run.traces) == 2
    parent, child = (
        sum((count(thread) for thread in replay(dump(trace)).values()), collections.Counter())
        for trace in run.traces
    )
    assert (parent["aten::sinh"], parent["aten::cosh"]) == (5, 3)
    assert (child["aten::sinh"], child["aten::cosh"]) == (7, 7)


def test_record_function_where_the_tap_does_not_fire(run_traced, dump, program, python):
    """After some sections without an operator, RecordFunction takes over, and the trace says so."""
    before = program("torch_untapped.c", "-shared", "-fPIC")
    trace_env = {**OPS, "LD_PRELOAD": f"{before}:{LIBTARE}"}
    dumped = dump(run_traced([python, program("torch_many.py")], trace_env=trace_env).trace)
    assert layers(dumped)["ops.tap"] == 2 and layers(dumped)["ops.record_function"] == 1
    assert not dumped.events("OP")
    (thread,) = by_work(replay(dumped))
    assert 50 <= count(thread)["aten::sinh"] < 100
    parents = {name: thread.ops[parent][0] for name, parent in thread.ops if parent >= 0}
    assert parents["aten::copy_"] == "aten::_to_copy"


def test_the_tap_hands_over_by_a_jump():
    """libtorch's own function must see its caller's frame and arguments."""
    name = "_ZN2at27getStepCallbacksUnlessEmptyENS_11RecordScopeE"
    command = ["objdump", "-d", "--no-show-raw-insn", f"--disassemble={name}", LIBTARE]
    text = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    code = [line.split("\t")[1] for line in text.splitlines() if line.count("\t")]
    assert code[-1].startswith("jmp") and "*" in code[-1]
    assert not any(instruction.startswith("ret") for instruction in code)
