"""
Calls of cuBLAS, cuDNN, NCCL and others: they reach the right library, answer as they do without tare, and
are in the trace, each once.
"""

import collections
import subprocess
import sys

import pytest

from conftest import PROG, ROOT
from test_library_table import SONAMES, TABLE

sys.path.insert(0, str(ROOT / "tests" / "sim"))
import counts  # noqa: E402


class Calls:
    """The library calls of a trace by thread, and what they answered."""

    def __init__(self, dump):
        tids = {r["thread"]: r["tid"] for r in dump.records("THREAD")}
        functions = {r["function"]: r for r in dump.records("FUNCTION") if r["category"] == 13}
        self.by_thread = collections.defaultdict(collections.Counter)
        self.results = []
        spans = collections.defaultdict(list)
        for event in dump.events():
            open_spans = spans[event["thread"]]
            if event["event"] == "LEAVE":
                call = open_spans.pop() if open_spans else None
                if call:
                    self.results.append((*call, event["result"]))
            elif event["event"] == "CALL" and event["function"] in functions:
                function = functions[event["function"]]
                self.by_thread[tids[event["thread"]]][function["name"]] += 1
                open_spans.append((function["library"], function["name"]))
            elif "function" in event or event["event"] in (
                "FRAME", "SECTION", "CALLBACK", "GIL", "OP_SPAN", "NODE", "TARE",
            ):  # fmt: skip
                open_spans.append(None)


@pytest.mark.parametrize("scope", ["private", "global"])
def test_calls_of_torch(scope, sim, python, run_bare_and_traced, dump, tmp_path):
    command = sim([python, "-W", "ignore", PROG / "library_calls.py"], "--scope", scope)
    run = run_bare_and_traced(
        command, returncode=0, env={"TARE_SIM_COUNTS": f"{tmp_path}/counts-%p"}
    )
    found = Calls(dump(run.trace))
    pid = int(run.trace.name.split("-")[1])
    counted = counts.read(tmp_path / f"counts-{pid}")
    hooked = {name for _, name, _, _ in TABLE}
    libraries = set()
    for tid, cells in counted.threads.items():
        expected = {name: cell.calls for (name, _), cell in cells.items() if name in hooked}
        assert found.by_thread[tid] == expected
        libraries |= {counted.libraries[name] for name in expected}
    # Each library has a part in it.
    assert {library.partition(".so")[0] for library in libraries} == {
        soname.partition(".so")[0] for versions in SONAMES.values() for soname, _ in versions
    }


@pytest.fixture
def plugin(tmp_path):
    """A plugin that calls `name`: of a library of that SONAME, or None: its own."""
    count = 0

    def build(out, sources, *flags):
        command = ["gcc", "-shared", "-fPIC", "-O1", *flags, *[PROG / s for s in sources]]
        subprocess.run([*command, "-o", out], check=True)

    def plugin(name, answer, soname=None, node=None):
        nonlocal count
        count += 1
        out = tmp_path / f"plugin-{count}.so"
        defines = [f"-DNAME={name}", f"-DANSWER={answer}"]
        if not soname:
            build(out, ["library_plugin.c", "library_fake.c"], *defines)
            return out
        folder = tmp_path / f"lib-{count}"
        folder.mkdir()
        flags = [f"-Wl,-soname,{soname}"]
        if node:
            (folder / "map").write_text(f"{node} {{ global: *; }};\n")
            flags.append(f"-Wl,--version-script={folder}/map")
        build(folder / soname, ["library_fake.c"], *defines, *flags)
        build(out, ["library_plugin.c"], *defines, f"-L{folder}", "-Wl,--no-as-needed",
              f"-l:{soname}", f"-Wl,-rpath,{folder}")  # fmt: skip
        return out

    return plugin


def test_each_version_is_reached(plugin, program, run_bare_and_traced, dump):
    """Also where they return errors: these are in the trace."""
    wanted, plugins = [], []
    for versions, name in (
        (SONAMES["CUBLAS"], "cublasCreate_v2"),
        (SONAMES["CUDNN"], "cudnnCreate"),
        (SONAMES["CUFFT"], "cufftExecC2C"),
    ):
        for soname, node in versions:
            answer = 0 if soname.endswith("11") else 10 + len(plugins)
            plugins.append(plugin(name, answer, soname, node))
            wanted += [(soname, name, answer)] * 2
    run = run_bare_and_traced([program("library_host.c"), *plugins], returncode=0)
    assert run.stdout.split() == [str(answer) for _, _, answer in wanted[::2]]
    assert Calls(dump(run.trace)).results == wanted


@pytest.mark.parametrize("own_first", [True, False])
def test_nccl_of_its_own(own_first, plugin, program, run_bare_and_traced, dump):
    """A library without versions may be in a process twice: as itself, and linked into another's code."""
    own = plugin("ncclGroupStart", 5)
    shared = plugin("ncclGroupStart", 6, "libnccl.so.2")
    plugins = [own, shared, own] if own_first else [shared, own, shared]
    run = run_bare_and_traced(
        [program("library_host.c"), "ncclGroupStart", *plugins], returncode=0
    )
    answers = ["5", "6", "5"] if own_first else ["6", "5", "6"]
    assert run.stdout.split() == ["ncclGroupStart", "0", *answers]


def test_nccl_missing(plugin, program, run_bare_and_traced):
    """Nothing is recorded where only a copy inside of another library is called."""
    run = run_bare_and_traced([program("library_host.c"), plugin("ncclGroupEnd", 4)], returncode=0)
    assert run.stdout == "4\n"
