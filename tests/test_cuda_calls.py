"""
CUDA runtime calls of C programs: they reach the right runtime with the right arguments, answer as
they do without tare, and are in the trace, each once. cuda_fake.c stands in for any runtime, the
simulated device for those of CUDA 12 and 13.
"""

import collections
import subprocess
import sys

import pytest

from conftest import PROG, ROOT, SIM
from test_cuda_table import HEADERS, SONAMES, find_runtime, names, table

sys.path.insert(0, str(ROOT / "tests" / "sim"))
import counts  # noqa: E402

CALLS = "CALL", "LAUNCH", "COPY", "SET", "MEMORY", "SYNC"
KINDS = dict(enumerate(("H2H", "H2D", "D2H", "D2D", "default")))


@pytest.fixture
def library(tmp_path):
    """A library of tests/prog."""

    def library(source, soname=None, node=None, lacks=(), flags=(), folder="lib"):
        (tmp_path / folder).mkdir(exist_ok=True)
        out = tmp_path / folder / (soname or f"lib{source[:-2]}.so")
        command = ["gcc", "-std=gnu17", "-D_GNU_SOURCE", "-O1", "-g", "-w"]
        command += ["-shared", "-fPIC", "-I", ROOT]
        if node:
            script = tmp_path / "version.map"
            local = "".join(f" {name};" for name in lacks)
            script.write_text(f"{node} {{ global: *; {'local:' if local else ''}{local} }};\n")
            command.append(f"-Wl,--version-script={script}")
        command += [f"-Wl,-soname,{out.name}", PROG / source, "-o", out, *flags]
        subprocess.run(command, check=True)
        return out

    return library


@pytest.fixture
def fake(library):
    """cuda_fake.c as the runtime of a major version."""

    def fake(major, soname=None, flags=(), **more):
        flags = [f"-DCUDART_MAJOR={major}", *flags]
        soname = soname or SONAMES[major]
        return library("cuda_fake.c", soname=soname, node=SONAMES[major], flags=flags, **more)

    return fake


@pytest.fixture
def simulated(tmp_path):
    """A simulated runtime's path, the environment to use it in, and its own counts afterwards."""

    def simulated(major, **knobs):
        runtime = SIM / "lib" / SONAMES[major]
        if not runtime.exists():
            pytest.skip(f"{runtime.name} is not simulated (make sim)")
        env = {"LD_LIBRARY_PATH": SIM / "lib", "TARE_SIM_COUNTS": f"{tmp_path}/counts-%p"}
        env.update({f"TARE_SIM_{name}": value for name, value in knobs.items()})
        return runtime, env

    return simulated


def link(major, library):
    return f"-DCUDART_MAJOR={major}", str(library), f"-Wl,-rpath-link,{SIM}/lib"


class Calls:
    """The calls of a trace: all, by (function, kind of copy), of each thread."""

    def __init__(self, dump):
        self.tids = {r["thread"]: r["tid"] for r in dump.records("THREAD")}
        self.functions = {r["function"]: r for r in dump.records("FUNCTION")}
        self.info = {r["key"]: r["value"] for r in dump.records("INFO")}
        self.by_thread = collections.defaultdict(collections.Counter)
        self.bytes = collections.Counter()
        self.all = []
        open_calls = collections.defaultdict(list)
        for event in dump.events():
            spans = open_calls[event["thread"]]
            if event["event"] in CALLS:
                name = self.functions[event["function"]]["name"]
                kind = KINDS.get(event.get("kind"), "")
                self.by_thread[self.tids[event["thread"]]][name, kind] += 1
                self.bytes[name, kind] += event.get("bytes", 0)
                spans.append({**event, "name": name})
                self.all.append(spans[-1])
            elif event["event"] == "RESULT":
                assert "value" not in spans[-1]
                spans[-1]["value"] = event["value"]
            elif event["event"] == "TARE":
                spans.append({})
            elif event["event"] == "LEAVE":
                spans.pop()["result"] = event["result"]
        assert not any(open_calls.values())
        assert not dump.records("LOST")
        self.total = sum(self.by_thread.values(), collections.Counter())

    def of(self, name):
        return [call for call in self.all if call["name"] == name]


@pytest.fixture
def calls(dump):
    return lambda trace: Calls(dump(trace))


def assert_counts_equal(calls, counted, majors):
    """Every function of the table, on every thread, as often as the simulated device was called."""
    hooked = {name for major in majors for name in names(major)} - {"cudaSetDevice"}
    for tid, cells in counted.threads.items():
        expected = {key: cell.calls for key, cell in cells.items() if key[0] in hooked}
        assert dict(calls.by_thread[tid]) == expected
    assert calls.by_thread.keys() == counted.threads.keys()


@pytest.mark.parametrize("major", SONAMES)
def test_every_function_is_forwarded(major, fake, program, run_bare_and_traced, calls):
    """Bare and traced answers are equal, and they depend on every byte of every argument."""
    runtime = fake(major)
    command = [program("cuda_table.c", *link(major, runtime))]
    run = run_bare_and_traced(command, env={"LD_LIBRARY_PATH": runtime.parent}, returncode=0)
    answers = [line.split() for line in run.stdout.splitlines()]
    assert [name for name, _ in answers] == list(names(major)) * 3

    found = calls(run.trace)
    recorded = [(call["name"], str(call["result"])) for call in found.all]
    assert recorded == [(n, answer) for n, answer in answers if n != "cudaSetDevice"]
    assert not any("value" in call for call in found.all), "a RESULT of a call that failed"
    assert {f["library"] for f in found.functions.values()} == {SONAMES[major]}
    assert found.info["cuda"] == f"{SONAMES[major]} {runtime}"

    def word(i):
        return 0x200000 + i * 0x1010

    fields = "stream", "bytes", "destination", "source"
    copy = found.of("cudaMemcpyAsync")[0]
    assert [copy[f] for f in fields] == [word(4), word(2), word(0), word(1)]
    assert found.of("cudaMemcpy2DAsync_ptsz")[0]["bytes"] == word(4) * word(5)
    assert found.of("cudaLaunchHostFunc_ptsz")[0]["stream"] == word(0)
    assert found.of("cudaHostRegister")[0]["pointer"] == word(0)
    assert found.of("cudaEventSynchronize")[0]["handle"] == word(0)


def test_categories(fake, program, run_traced, calls):
    runtime = fake(13)
    command = [program("cuda_table.c", *link(13, runtime))]
    found = calls(run_traced(command, env={"LD_LIBRARY_PATH": runtime.parent}).trace)
    category = {f["name"]: f["category"] for f in found.functions.values()}
    expected = {
        "__cudaLaunchKernel": 1,
        "cudaMemcpyAsync": 2,
        "cudaMemcpy_ptds": 3,
        "cudaMalloc": 4,
        "cudaHostAlloc": 5,
        "cudaMallocManaged": 6,
        "cudaHostRegister": 7,
        "cudaHostUnregister": 8,
        "cudaFreeHost": 9,
        "cudaStreamSynchronize": 10,
        "cudaEventQuery": 11,
        "cudaStreamEndCapture": 12,
    }
    assert {name: category[name] for name in expected} == expected


@pytest.mark.parametrize("major", [12, 13])
def test_counts_equal_the_simulated_devices(
    major, simulated, program, run_bare_and_traced, calls, tmp_path
):
    runtime, env = simulated(major)
    run = run_bare_and_traced(
        [program("cuda_kinds.c", *link(major, runtime)), "3", "40"], env=env, returncode=0
    )
    found = calls(run.trace)
    pid = min(found.tids.values())
    counted = counts.read(tmp_path / f"counts-{pid}")
    assert len(counted.threads) == 4
    assert_counts_equal(found, counted, [major])
    total = counted.total()
    for key in found.bytes:
        if found.of(key[0])[0]["event"] in ("COPY", "SET"):
            assert found.bytes[key] == total[key].bytes, key

    # Addresses: what was given back is what is freed and copied to.
    blocks = {call["value"] for call in found.all if "value" in call and call["result"] == 0}
    freed = {call["pointer"] for call in found.of("cudaFree") + found.of("cudaFreeAsync")} - {0}
    assert freed <= blocks
    assert {call["destination"] for call in found.of("cudaMemcpy") if call["kind"] == 1} <= blocks
    assert [call["value"] for call in found.of("cudaPointerGetAttributes")][:4] == [0, 1, 2, 3]
    refused = [call for call in found.of("cudaMalloc") if call["result"]]
    assert refused and not any("value" in call for call in refused)


@pytest.mark.parametrize("majors", [(12,), (13,), (12, 13), (13, 12)])
def test_plugins_reach_their_own_runtime(
    majors, simulated, library, program, run_bare_and_traced, calls, tmp_path
):
    """Behind dlopen(RTLD_LOCAL), where RTLD_NEXT finds nothing; and two runtimes in one process."""
    command = [program("cuda_host.c")]
    for major in majors:
        runtime, env = simulated(major)
        plugin = library("cuda_plugin.c", folder=f"{major}", flags=link(major, runtime))
        command += [plugin, str(major)]
    row = "two CUDA runtimes" if len(majors) == 2 else ()
    run = run_bare_and_traced(command, env=env, returncode=0, row=row)
    assert run.stdout.split() == [str(major) for major in majors] * 2

    found = calls(run.trace)
    counted = counts.read(tmp_path / f"counts-{max(found.tids.values())}")
    assert_counts_equal(found, counted, majors)
    per_library = collections.Counter(
        (found.functions[call["function"]]["library"], call["name"]) for call in found.all
    )
    assert per_library == {
        (SONAMES[major], name): 2 * major
        for major in majors
        for name in ("cudaMalloc", "cudaMemcpy", "cudaFree")
    }
    paths = [f"{SONAMES[major]} {SIM / 'lib' / SONAMES[major]}" for major in majors]
    assert found.info["cuda"] == ", ".join(paths)


def test_a_runtime_of_another_name(fake, library, program, run_bare_and_traced, calls):
    """Wheels may carry a copy whose SONAME is changed; its symbols keep their version."""
    runtime = fake(11, soname="libcudart-e409450e.so.11.0", flags=["-DFAKE_RESULT=0"])
    flags = [*link(11, runtime), f"-Wl,-rpath,{runtime.parent}"]
    plugin = library("cuda_plugin.c", folder="plugin", flags=flags)
    run = run_bare_and_traced([program("cuda_host.c"), plugin, "3"], returncode=0)
    assert run.stdout.split() == ["11", "11"]
    found = calls(run.trace)
    assert found.info["cuda"] == f"{SONAMES[11]} {runtime}"
    assert found.total["cudaMalloc", ""] == 6


def test_a_forked_child_defines_its_functions(fake, program, run_bare_and_traced, calls):
    runtime = fake(12, flags=["-DFAKE_RESULT=0"])
    run = run_bare_and_traced(
        [program("cuda_fork.c", *link(12, runtime))],
        env={"LD_LIBRARY_PATH": runtime.parent},
        returncode=0,
    )
    totals = sorted(sum(calls(trace).total.values()) for trace in run.traces)
    assert totals == [2 * 5, 2 * (3 + 4)]
    for trace in run.traces:
        found = calls(trace)
        assert {f["name"] for f in found.functions.values()} == {
            "cudaDeviceSynchronize",
            "cudaStreamSynchronize",
        }
        assert found.info["cuda"] == f"{SONAMES[12]} {runtime}"


def test_devices(simulated, program, run_bare_and_traced, dump):
    """DEVICE comes before the first call on another device than before, and only then."""
    runtime, env = simulated(13, DEVICES=2)
    command = [program("cuda_devices.c", *link(13, runtime))]
    run = run_bare_and_traced(command, env=env, returncode=0)
    threads = collections.defaultdict(list)
    for event in dump(run.trace).events("DEVICE", "SYNC"):
        threads[event["thread"]].append(event.get("device", "sync"))
    assert threads[1] == ["sync", "sync", 1, "sync", "sync", "sync", 0, "sync"]
    assert threads[2] == [1, "sync", "sync"]


def test_errors_are_the_runtimes(simulated, program, run_bare_and_traced, calls):
    runtime, env = simulated(13)
    run = run_bare_and_traced([program("cuda_errors.c", *link(13, runtime))], env=env, returncode=0)
    assert "last error 2 2 then 0, errno 33" in run.stdout
    assert {call["result"] for call in calls(run.trace).all} > {0, 2}


@pytest.mark.parametrize("version, include", HEADERS)
def test_errors_are_the_real_runtimes(version, include, program, run_bare_and_traced, calls):
    """NVIDIA's own library; where there is no driver all it does is to fail."""
    major = version // 1000
    runtime = find_runtime(include, major)
    build = program("cuda_errors.c", *link(major, runtime))
    run = run_bare_and_traced([build], env={"LD_LIBRARY_PATH": runtime.parent}, returncode=0)
    found = calls(run.trace)
    assert found.info["cuda"] == f"{SONAMES[major]} {runtime}"
    assert len(found.of("cudaMalloc")) == 4


def test_handles_are_not_ours(simulated, program, run_bare_and_traced):
    """dlsym finds the runtime's own functions, by handle or in the global scope."""
    runtime, env = simulated(13)
    run = run_bare_and_traced([program("cuda_handles.c"), runtime], env=env, returncode=0)
    assert run.stdout.count("libcudart.so.13") == 2
    assert "libtare" not in run.stdout
    assert not run.traces


def test_a_function_that_the_runtime_lacks(fake, program, run_traced, calls):
    build = program("cuda_missing.c", *link(12, fake(12)), "-Wl,-z,lazy")
    lacking = fake(12, lacks=["cudaMemcpyPeer"], folder="lacking", flags=["-DFAKE_RESULT=0"])
    run = run_traced([build], env={"LD_LIBRARY_PATH": lacking.parent})
    assert (run.returncode, run.stdout, run.stderr) == (0, "0 801 801 0 33\n", "")
    assert calls(run.trace).total == {("cudaDeviceSynchronize", ""): 2}


@pytest.mark.parametrize("stacks", ["none", "wait"])
def test_calls_that_do_not_return(stacks, library, program, run_bare_and_traced, dump):
    runtime = library("cuda_unwind.c", soname=SONAMES[13], node=SONAMES[13],
                      flags=["-DRUNTIME", "-DCUDART_MAJOR=13", "-fexceptions"])  # fmt: skip
    build = program("cuda_unwind.c", *link(13, runtime), "-fexceptions")
    run = run_bare_and_traced([build], env={"LD_LIBRARY_PATH": runtime.parent},
                              trace_env={"TARE_STACKS": stacks}, returncode=0)  # fmt: skip
    assert run.stdout.count("clean-up 0") == 2
    events = collections.defaultdict(list)
    for event in dump(run.trace).events("LAUNCH", "SYNC", "LEAVE"):
        if event.get("of") != "TARE":
            events[event["thread"]].append(event["event"])
    assert events[1] == ["LAUNCH", "SYNC", "LEAVE"]
    thread = ["SYNC", "LEAVE", "LAUNCH", "SYNC", "LEAVE"]
    assert (events[2], events[3]) == (thread, thread)


def test_allocations_are_recorded_during_the_delay(simulated, program, run_bare_and_traced, calls):
    runtime, env = simulated(13)
    run = run_bare_and_traced(
        [program("cuda_kinds.c", *link(13, runtime))],
        env=env,
        trace_env={"TARE_DELAY": "3600"},
        returncode=0,
    )
    found = calls(run.trace)
    assert {call["event"] for call in found.all} == {"MEMORY"}
    assert len(found.of("cudaHostAlloc")) == len(found.tids) == 4
    assert all("value" in call for call in found.of("cudaHostAlloc"))


@pytest.mark.parametrize("layers", ["none", "frames", "frames,ops"])
def test_layer_off(layers, fake, program, run_bare_and_traced):
    runtime = fake(13)
    run = run_bare_and_traced(
        [program("cuda_table.c", *link(13, runtime))],
        env={"LD_LIBRARY_PATH": runtime.parent},
        trace_env={"TARE_LAYERS": layers},
        returncode=0,
    )
    assert not run.traces


def test_no_runtime_no_trace(program, run_bare_and_traced):
    assert not run_bare_and_traced([program("cuda_none.c")], returncode=3).traces


def test_the_table_holds_what_is_known_to_wait():
    """Functions that stop the host, from NVIDIA's list of synchronisation behaviour."""
    for major in SONAMES:
        rows = {name for name, _, _, _ in table(major)}
        assert {"cudaDeviceSynchronize", "cudaStreamSynchronize", "cudaEventSynchronize"} <= rows
        assert {"cudaMemcpy", "cudaMemcpyAsync", "cudaFree", "cudaHostAlloc"} <= rows
        assert ("cudaThreadSynchronize" in rows) == (major <= 12)
