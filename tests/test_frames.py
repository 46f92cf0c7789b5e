"""Python frames and sites, on each interpreter of this machine."""

import collections
import ctypes
import subprocess

import pytest
from conftest import ROOT, SIM

SPANS = "FRAME SECTION CALLBACK GIL OP_SPAN NODE TARE CALL LAUNCH COPY SET MEMORY SYNC".split()


def version_of(python):
    probe = "import sys; print(*sys.version_info[:3])"
    done = subprocess.run([python, "-I", "-S", "-c", probe], capture_output=True, text=True, check=True)
    return tuple(map(int, done.stdout.split()))


def sees_no_getitem(version):
    """These run __getitem__ without the hook, once the instruction is specialised."""
    return (3, 11) <= version < (3, 11, 4)


@pytest.fixture
def version(any_python):
    return version_of(any_python)


@pytest.fixture(scope="session")
def line_of(tmp_path_factory):
    """line_of(LINES record, CODE record, site) → line, by the analyzer's own decoder."""
    library = tmp_path_factory.mktemp("lines") / "lines.so"
    source = ROOT / "analyzer" / "lines.c"
    subprocess.run(
        ["gcc", "-std=gnu17", "-shared", "-fPIC", "-I", ROOT, source, "-o", library], check=True
    )

    class Str(ctypes.Structure):
        _fields_ = [("data", ctypes.c_char_p), ("length", ctypes.c_uint32)]

    lookup = ctypes.CDLL(str(library)).lines_lookup
    lookup.argtypes = [ctypes.c_uint32, ctypes.c_uint32, Str, ctypes.c_uint32]

    def line_of(lines, code, site):
        table = bytes.fromhex(lines["lines"])
        return lookup(lines["python"], code["first_line"], Str(table, len(table)), site - 1)

    return line_of


Call = collections.namedtuple("Call", "thread name code caller site how result level")


class Frames:
    """The calls of a trace, with what a reader knows of each."""

    def __init__(self, dump):
        self.codes = {record["code"]: record for record in dump.records("CODE")}
        self.lines = {record["code"]: record for record in dump.records("LINES")}
        self.layers = {record["layer"]: record for record in dump.records("LAYER")}
        self.depths = {record["thread"]: record["depth"] for record in dump.records("THREAD")}
        self.calls = []
        self.syncs = []  # (code id, site) of each SYNC
        self.open = {thread: [None] * depth for thread, depth in self.depths.items()}
        self.leave_to = 0
        code_of = {}  # thread → stack of what is taken for the innermost code, one for each span
        for event in dump.events():
            thread = event["thread"]
            spans = self.open[thread]
            codes = code_of.setdefault(thread, [None] * (len(spans) + 1))
            name = event["event"]
            if name in SPANS:
                codes.append(codes[-1])
                spans.append(None)
            if name == "FRAME":
                code = self.codes[event["code"]]
                caller = codes[-1] if event["site"] else None
                spans[-1] = len(self.calls)
                codes[-1] = event["code"]
                self.calls.append(
                    Call(
                        thread,
                        code["name"].rpartition(".")[2],
                        event["code"],
                        caller,
                        event["site"],
                        event["how"],
                        None,
                        len(spans) - 1,
                    )
                )
            elif name == "SYNC":
                self.syncs.append((codes[-1], event["site"]))
            elif name == "AT":
                assert event["code"] in self.codes
                # It holds until the frame that it is in ends, so for the other spans in that too.
                for i in reversed(range(len(codes))):
                    codes[i] = event["code"]
                    if i == 0 or spans[i - 1] is not None:
                        break
            elif name in ("LEAVE", "LEAVE_TO"):
                depth = event["depth"] if name == "LEAVE_TO" else len(spans) - 1
                self.leave_to += name == "LEAVE_TO"
                if name == "LEAVE" and spans[-1] is not None:
                    self.calls[spans[-1]] = self.calls[spans[-1]]._replace(result=event["result"])
                del spans[depth:], codes[depth + 1 :]

    def of_file(self, path):
        return [call for call in self.calls if self.codes[call.code]["file"] == str(path)]

    def counts(self, path):
        return collections.Counter(call.name for call in self.of_file(path))

    def line(self, code, site, line_of):
        """function:line."""
        if not site:
            return "none"
        record = self.codes[code]
        return "%s:%d" % (record["name"].rpartition(".")[2], line_of(self.lines[code], record, site))

    def caller_line(self, call, line_of):
        return self.line(call.caller, call.site, line_of)

    def check_whole(self):
        assert not self.leave_to
        assert not any(self.open.values())
        assert all(call.result in (0, 1) for call in self.calls)
        assert set(self.lines) == set(self.codes)


@pytest.fixture
def frames(run_bare_and_traced, dump, program, any_python):
    """frames("x.py") → Frames of tests/prog/x.py, which ran bare too; .run, .path."""

    def frames(name, *arguments, **more):
        path = program(name)
        run = run_bare_and_traced([any_python, *arguments, "-I", path], returncode=0, **more)
        found = Frames(dump(run.trace))
        found.run = run
        found.path = path
        return found

    return frames


def test_counts(frames, version):
    found = frames("frames_calls.py")
    created = version >= (3, 11)  # a generator's first entry makes the generator
    expected = {
        "<module>": 1,
        "main": 1,
        "plain": 100,
        "with_arguments": 200,
        "Thing": 1,
        "__init__": 3,
        "method": 100,
        "prop": 100,
        "made": 1,
        "static": 100,
        "__getitem__": 100,
        "__call__": 100,
        "__add__": 100,
        "__eq__": 1,
        "__hash__": 2,
        "key": 50,
        "mapped": 60,
        "cached": 10,
        "closure": 20,
        "inner": 20,
        "catches": 30,
        "raises": 30,
        "through_c": 10,
        "generator": 41 + 26 + 2 * created,
        "delegating": 26 + created,
        "<genexpr>": 8 + created,
        "<lambda>": 1,
    }
    if version < (3, 12):
        expected["<listcomp>"] = 1
    counts = found.counts(found.path)
    if sees_no_getitem(version):
        assert 0 <= counts["__getitem__"] <= 100
        assert "__getitem__" in found.layers["frames"]["detail"]
        counts["__getitem__"] = 100
    assert counts == expected
    raised = collections.Counter(call.name for call in found.of_file(found.path) if call.result)
    assert raised == {"raises": 30, "through_c": 10}
    found.check_whole()
    assert found.layers["frames"]["state"] == 1
    assert "eval-frame hook, CPython %d.%d.%d" % version in found.layers["frames"]["detail"]


def test_direct_calls_have_the_smallest_distance(frames):
    found = frames("frames_calls.py")
    distances = collections.defaultdict(set)
    for call in found.of_file(found.path):
        distances[call.name].add(call.how >> 1)
    assert len(distances["plain"]) == 1
    (direct,) = distances["plain"]
    assert distances["static"] == {direct}
    assert all(distance > direct for distance in distances["key"] | distances["mapped"])


def test_sites_are_the_lines_of_the_calls(frames, line_of, version):
    found = frames("frames_sites.py")
    expected = [line.split() for line in found.run.stdout.splitlines()]
    callees = ["callee", "__getitem__", "prop"]
    if sees_no_getitem(version):
        callees.remove("__getitem__")
    calls = [call for call in found.of_file(found.path) if call.name in callees]
    assert [[call.name, found.caller_line(call, line_of)] for call in calls] == [
        line for line in expected if line[0] in callees
    ]
    assert len(calls) > 60
    found.check_whole()


def test_line_tables(any_python, program):
    tables = subprocess.run(
        [any_python, "-W", "ignore", program("lines_tables.py")], capture_output=True, check=True
    ).stdout
    check = program("lines_check.c", ROOT / "analyzer" / "lines.c", "-fsanitize=address,undefined")
    done = subprocess.run([check], input=tables, capture_output=True)
    assert done.returncode == 0, done.stdout
    assert int(done.stdout.split()[0]) > 100000


def test_callers_that_are_not_seen_are_named(frames, line_of, version):
    found = frames("frames_built.py")
    counts = found.counts(found.path)
    assert counts["called"] == 600
    if version[:2] == (3, 13):
        assert 2 <= counts["__init__"] <= 400
        assert "__init__" in found.layers["frames"]["detail"]
    else:
        assert counts["__init__"] == 400
    callers = collections.Counter(
        found.caller_line(call, line_of) for call in found.of_file(found.path) if call.name == "called"
    )
    assert callers == {"__init__:10": 200, "__init__:16": 200, "main:24": 200}
    found.check_whole()


def test_recursion(frames, version):
    found = frames("frames_recursion.py", row="recursion, 900 deep")
    assert "900 deep: 900" in found.run.stdout
    assert ("frames.deep" in found.layers) == (version >= (3, 11))
    deepest = max(call.level for call in found.calls if call.name == "down")
    assert deepest > 900


def test_frames_that_are_thrown_into(frames, version):
    found = frames("frames_generators.py", row="frames thrown into through C")
    counts = found.counts(found.path)
    assert counts["cleanup"] == 18
    thrown = collections.Counter(call.name for call in found.of_file(found.path) if call.how & 1)
    assert thrown["stubborn"] == 3
    assert thrown["counts"] == 4
    assert thrown["cancelled"] == 1
    found.check_whole()


def test_threads(frames):
    found = frames("frames_threads.py")
    assert found.counts(found.path)["work"] == 2021
    assert len(found.depths) == 1 + 2 * 4 + 2 + 20
    by_thread = collections.Counter(call.thread for call in found.calls if call.name == "work")
    assert sorted(by_thread.values()) == sorted([100, 200, 300, 400] * 2 + [1] * 21)
    found.check_whole()


def test_code_objects_that_go(frames):
    found = frames("frames_codes.py", row="exec-made code, freed, addresses used again")
    counts = collections.Counter((found.codes[call.code]["file"], call.name) for call in found.calls)
    for i in range(300):
        expected = {"<module>": 1, f"made_{i}": i % 3 + 1, "other": i % 3 + 1}
        assert {name: counts[f"made_{i}.py", name] for name in expected} == expected
    names = {record["name"]: record["file"] for record in found.codes.values()}
    assert names["größe"] == "äöü/日本語.py"
    assert names["\U0001f40d"] == "snake.py"
    assert names["lone_\\udc80_surrogate"] == "file_\\udcff.py"
    assert names["x" * 100000] == "long_" + "y" * 100000
    assert "<string>" in [file for name, file in names.items() if name.startswith("zero")]
    (big,) = [record["code"] for record in found.codes.values() if record["name"] == "big"]
    assert len(found.lines[big]["bytecode"]) > 2 * 100000
    found.check_whole()


def test_settrace_and_setprofile(frames):
    found = frames("frames_hooks.py", row="sys.settrace, sys.setprofile, sys.monitoring")
    assert found.counts(found.path)["called"] >= 8
    found.check_whole()


def test_interpreters(frames):
    found = frames("frames_interpreters.py", "-W", "ignore", row="sub-interpreters")
    counts = collections.Counter(call.name for call in found.calls)
    assert counts["here"] in (10, 16)
    assert counts["there"] == 0
    found.check_whole()


def test_forked_child(run_bare_and_traced, any_python, program, dump, line_of):
    path = program("frames_fork.py")
    run = run_bare_and_traced(
        [any_python, "-I", path], returncode=0, trace_env={"TARE_CHILDREN": "all"}
    )
    assert run.stdout == "7\n"
    both = [Frames(dump(trace)) for trace in run.traces]
    parent, child = sorted(both, key=lambda found: max(found.depths.values()))
    for found, lines in [(parent, [12, 14, 22, 28]), (child, [14, 22, 28])]:
        calls = [call for call in found.of_file(path) if call.name == "leaf"]
        assert [
            int(found.caller_line(call, line_of).partition(":")[2]) for call in calls
        ] == lines
        found.check_whole()
    assert max(child.depths.values()) >= 4


def test_frames_not_asked_for(run_bare_and_traced, any_python, program):
    command = [any_python, "-I", program("frames_calls.py")]
    run = run_bare_and_traced(command, returncode=0, trace_env={"TARE_LAYERS": "ops,cuda"})
    assert not run.traces


def test_greenlets(run_bare_and_traced, any_tools, program, dump, line_of):
    path = program("frames_greenlets.py")
    found = Frames(dump(run_bare_and_traced([any_tools, path], returncode=0, row="greenlet").trace))
    counts = found.counts(path)
    assert counts == {
        "<module>": 1,
        "main": 1,
        "take_turns": 1,
        "worker": 16,
        "inner": 60 + 11,
        "leaf": 3 * 60 + 2 * (60 + 5) + 11 * 2 + 2,
    }
    assert not any(found.open.values())
    # What is called from a frame that was switched to has the right caller all the same.
    callers = collections.Counter(
        found.caller_line(call, line_of) for call in found.of_file(path) if call.name == "leaf"
    )
    assert callers == {
        "worker:14": 71,
        "inner:20": 71,
        "inner:22": 60,
        "take_turns:32": 65,
        "take_turns:34": 65,
        "main:45": 1,
        "main:52": 1,
    }


@pytest.mark.slow
def test_torch_compile(run_bare_and_traced, python, program, dump):
    path = program("frames_compile.py")
    counts = Frames(dump(run_bare_and_traced([python, path], returncode=0).trace)).counts(path)
    assert counts["plain"] == 4 * 101 + 901
    assert counts["torch_dynamo_resume_in_compiled_at_12"] == 4


@pytest.mark.parametrize("layers", ["frames,ops,cuda", "ops,cuda"])
def test_sites_of_native_calls(run_bare_and_traced, any_python, program, dump, line_of, layers):
    runtime = SIM / "lib" / "libcudart.so.13"
    if not runtime.exists():
        pytest.skip("the simulated CUDA device is not built (make sim)")
    plugin = program("frames_plugin.c", "-shared", "-fPIC", str(runtime), f"-Wl,-rpath-link,{SIM}/lib")
    run = run_bare_and_traced(
        [any_python, "-I", program("frames_native.py"), plugin, layers.partition(",")[0]],
        returncode=0,
        env={"LD_LIBRARY_PATH": SIM / "lib"},
        trace_env={"TARE_LAYERS": layers},
    )
    found = Frames(dump(run.trace))
    assert bool(found.calls) == ("frames" in layers)
    assert [found.line(*sync, line_of) for sync in found.syncs] == run.stdout.split()


@pytest.mark.parametrize(
    "version, flags, reason",
    [
        ("3.8.19", [], "not known"),
        ("3.99.0", [], "not known"),
        ("3.14.0", ["-DFREE_THREADED=1"], "free-threaded"),
        ("3.14.0", ['-DCOOKIE="else"'], "does not publish"),
        ("3.13.0", [], "does not publish"),  # the version that is published differs
        ("3.14.0", [], "thread state"),
        ("3.14.0", ["-DLACKS_RESTORE"], "has no PyErr_Restore"),
    ],
)
def test_unknown_interpreters(run_bare_and_traced, program, dump, version, flags, reason):
    runtime = SIM / "lib" / "libcudart.so.13"
    if not runtime.exists():
        pytest.skip("the simulated CUDA device is not built (make sim)")
    flags = [f'-DVERSION="{version}"', "-rdynamic", str(runtime), f"-Wl,-rpath-link,{SIM}/lib", *flags]
    run = run_bare_and_traced(
        [program("frames_unknown.c", *flags)],
        returncode=0,
        env={"LD_LIBRARY_PATH": SIM / "lib"},
        row="a free-threaded build" if "free" in reason else "an unknown version",
    )
    found = Frames(dump(run.trace))
    assert found.layers["frames"]["state"] == 2
    assert reason in found.layers["frames"]["detail"]
    assert f"CPython {version}: " in found.layers["frames"]["detail"]
    assert [site for _, site in found.syncs] == [0]


def test_another_evaluator_is_left_alone(run_bare_and_traced, any_python, version, program, dump):
    if version < (3, 12):
        pytest.skip("perf's trampoline came with 3.12")
    command = [any_python, "-X", "perf", "-I", program("frames_calls.py")]
    run = run_bare_and_traced(command, returncode=0, row="options -X perf")
    for trace in run.traces:
        assert not dump(trace).events("FRAME")
