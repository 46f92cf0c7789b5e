"""Load: many threads at full rate, many processes, limits, days of time. What is counted is exact, or said."""

import collections
import json
import os
import random
import re
import resource
import shutil
import struct
import subprocess
import sys
import time

import pytest
from conftest import BUILD, LIBTARE, PROG, ROOT, TARE, check_ledgers, clean_environment

sys.path.insert(0, str(ROOT / "tests" / "sim"))
import counts as sim_counts  # noqa: E402

DAY = 86400


def tare(*args, **more):
    """(stdout, stderr) of a command that ends well."""
    command = [TARE, *map(str, args)]
    done = subprocess.run(command, capture_output=True, text=True, env=clean_environment({}), **more)
    assert done.returncode == 0, done.stderr
    return done.stdout, done.stderr


# -------------------------------------------------------------------------------- days


def generate(path, *args):
    command = [BUILD / "tests" / "tare_gen", path, *map(str, args)]
    return json.loads(subprocess.run(command, check=True, capture_output=True).stdout)


@pytest.mark.parametrize("days", [1, 100])
def test_slow_program(tmp_path, count_events, days):
    """A program that sleeps for hours between its passes: all is as where it does not, but the wall."""
    kinds = ["--spans", 40_000, "--gpu", "--stacks", "--calibrated"]
    quick = generate(tmp_path / "quick.tare", *kinds)
    passes = quick["threads"][0]["passes"]
    slow = generate(tmp_path / "slow.tare", *kinds, "--pause", days * DAY // passes)
    assert slow == quick
    for name in ("quick", "slow"):
        check_ledgers(tmp_path / f"{name}.tare", count_events)
    found = [json.loads(tare("report", "--format", "json", tmp_path / f"{name}.tare")[0])
             for name in ("quick", "slow")]
    wall_ns = found[1]["trace"]["wall_ns"]
    assert wall_ns - found[0]["trace"]["wall_ns"] == pytest.approx(days * DAY // passes * passes * 1e9)
    # Sleeping is the main function's own time, and nobody else's.
    ledgers = [report["ledger"] for report in found]
    for line in ("framework_ns", "library_ns", "launch_ns", "copy_ns", "wait_ns"):
        assert ledgers[0][line] == pytest.approx(ledgers[1][line], rel=1e-3, abs=10)
    assert ledgers[1]["python_user_ns"] == pytest.approx(wall_ns, rel=1e-3)
    ops = [{(op["op"], str(op["site"])): op for op in report["ops"]} for report in found]
    assert ops[0].keys() == ops[1].keys()
    for op, one in ops[0].items():
        assert ops[1][op]["calls"] == one["calls"]
        medians = [ops[i][op]["framework_ns"]["median"] for i in range(2)]
        assert medians[1] == pytest.approx(medians[0], rel=0.05, abs=3)
    text = tare("report", tmp_path / "slow.tare")[0]
    assert f"wall {'24.0 h' if days == 1 else '100 d'}" in text
    for command in ("ops", "syncs", "info", "dump"):
        out, errors = tare(command, tmp_path / "slow.tare")
        assert out and not errors


# -------------------------------------------------------------------------------- threads


class Calls:
    """The file COUNTS of load_calls.c."""

    def __init__(self, path):
        rows = list(struct.iter_unpack("<QQQ40x", path.read_bytes()))
        self.peak_kb = rows[0][0]
        self.by_thread = {thread: calls for calls, _, thread in rows[1:] if thread}
        self.by_process = collections.Counter()
        for calls, process, _ in rows[1:]:
            self.by_process[process] += calls


def pid_of(trace):
    return struct.unpack_from("<I", trace.read_bytes()[:64], 32)[0]


def stop_of(trace):
    return struct.unpack_from("<I", trace.read_bytes()[:136], 120)[0]


def threads_of(trace):
    """{number in the trace: the kernel's}"""
    threads = json.loads(tare("info", "--format", "json", trace)[0])["traces"][0]["threads"]
    return {thread["thread"]: thread["tid"] for thread in threads}


def is_whole(counts):
    return not (counts["lost"] or counts["damaged"] or counts["missing"] or counts["truncated"])


def calls_by_thread(trace, counts):
    """What the trace holds; each has its leave."""
    assert is_whole(counts)
    tids, found = threads_of(trace), {}
    for thread, events in counts["threads"].items():
        assert events["LEAVE"] == events["SYNC"] + events.get("TARE", 0)
        found[tids[thread]] = events["SYNC"]
    return found


def run_threads(tmp_path, run_traced, load_calls, threads, seconds, env=None):
    bare, traced = tmp_path / "bare", tmp_path / "counts"
    run_traced([load_calls, bare, "0.1", "0", threads], trace_env={"LD_PRELOAD": ""})
    run = run_traced([load_calls, traced, seconds, "0", threads], trace_env=env, timeout=300)
    assert (run.returncode, run.stdout, run.stderr) == (0, "0 failed\n", "")
    return run, Calls(bare), Calls(traced)


@pytest.fixture(scope="session")
def load_calls(program, cudart):
    return program("load_calls.c", *cudart())


# The minute makes a trace of some 300 MB, and takes two minutes in all.
@pytest.mark.parametrize("seconds", [3, pytest.param(60, marks=pytest.mark.slow)])
def test_threads_at_full_rate(tmp_path, run_traced, count_events, load_calls, seconds):
    run, bare, traced = run_threads(tmp_path, run_traced, load_calls, 64, seconds)
    found = calls_by_thread(run.trace, count_events(run.trace))
    assert len(found) == 64 and found == traced.by_thread
    assert sum(found.values()) > 10_000 * seconds
    # What tare may take: 8 MB, and 0.5 MB a thread.
    assert traced.peak_kb - bare.peak_kb < 8192 + 512 * 64


def test_the_simulator_counts_the_same(tmp_path, run_traced, count_events, load_calls):
    """The program's own count is not the only witness."""
    env = {"TARE_SIM_COUNTS": tmp_path / "sim"}
    run, _, traced = run_threads(tmp_path, run_traced, load_calls, 64, 0.5, env)
    (seen,) = sim_counts.read_all(tmp_path / "sim")
    assert {tid: seen.calls("cudaStreamQuery", tid=tid) for tid in seen.threads} == traced.by_thread
    assert calls_by_thread(run.trace, count_events(run.trace)) == traced.by_thread


# 130 MB of trace, some 300 MB of memory; half a minute.
@pytest.mark.slow
def test_a_thousand_threads_at_once(tmp_path, run_traced, count_events, load_calls):
    run, bare, traced = run_threads(tmp_path, run_traced, load_calls, 1000, 3)
    found = calls_by_thread(run.trace, count_events(run.trace))
    assert len(found) == 1000 and found == traced.by_thread
    assert traced.peak_kb - bare.peak_kb < 8192 + 512 * 1000


# The long one takes 15 seconds.
@pytest.mark.parametrize("threads, calls", [(8, 1000), pytest.param(24, 20000, marks=pytest.mark.slow)])
def test_threads_of_torch(tmp_path, run_traced, count_events, sim, python, threads, calls):
    """Operators, frames and launches of each thread, against the program's count and the simulator's."""
    pytest.importorskip("torch")
    command = sim([python, PROG / "load_torch.py", threads, calls, tmp_path / "counts"])
    env = {"TARE_SIM_COUNTS": tmp_path / "sim"}
    run = run_traced(command, trace_env=env, timeout=170)
    assert run.returncode == 0, run.stderr
    own = {int(tid): made for tid, made in json.loads((tmp_path / "counts").read_text()).items()}
    counts, tids = count_events(run.trace, "leaf"), threads_of(run.trace)
    assert is_whole(counts)
    found = {tids[thread]: events for thread, events in counts["threads"].items()}
    assert {tid: found[tid]["FRAME"] for tid in own} == own
    made = {}
    for op in json.loads(tare("ops", "--by", "op,thread", "--top", 0, "--format", "json", run.trace)[0])["ops"]:
        if op["op"] == "aten::add_.Tensor":
            made[tids[int(op["thread"].split()[0])]] = op["calls"]
    assert made == own
    (seen,) = sim_counts.read_all(tmp_path / "sim")
    launches = collections.Counter()
    for tid, cells in seen.threads.items():
        for (function, _), cell in cells.items():
            launches[tid] += cell.calls if "LaunchKernel" in function else 0
    assert +launches == {tid: events["LAUNCH"] for tid, events in found.items() if "LAUNCH" in events}


# -------------------------------------------------------------------------------- processes


def start_at_once(commands, folder, env):
    """Processes whose input ends for all at the same moment. Returns [(pid, status, stdout)]."""
    env = clean_environment({"LD_PRELOAD": LIBTARE, **env})
    end, hold = os.pipe()
    options = {"stdin": end, "stdout": subprocess.PIPE, "stderr": subprocess.STDOUT, "env": env}
    started = [
        subprocess.Popen([str(part) for part in command], cwd=folder, **options)
        for command in commands
    ]
    os.close(end)
    os.close(hold)
    return [(one.pid, one.wait(), one.communicate()[0].decode()) for one in started]


def leaf_calls(trace):
    codes = {code["code"] for code in trace.records("CODE") if code["name"] == "leaf"}
    return sum(frame["code"] in codes for frame in trace.events("FRAME"))


@pytest.mark.parametrize("output", ["", "x.tare"], ids=["folder", "one-name"])
def test_processes_at_once(tmp_path, count_events, dump, load_calls, python, output):
    """200 of them: C and Python, started and forked, with one folder, or one name, for all traces."""
    folder = tmp_path / "traces"
    folder.mkdir()
    pythons, programs, forks = (70, 60, 70) if not output else (20, 10, 170)
    commands = [[python, "-I", "-S", PROG / "load_leaf.py", 100 + n] for n in range(pythons)]
    commands += [[load_calls, tmp_path / f"c{n}", 0, 1000 + n, 2] for n in range(programs)]
    commands.append([load_calls, tmp_path / "forks", 0, 2000, 1, forks])
    ended = start_at_once(commands, tmp_path, {"TARE_OUTPUT": f"{folder}/{output}"})
    assert [(status, out) for _, status, out in ended] == (
        [(0, "over\n")] * pythons + [(0, "0 failed\n")] * (programs + 1)
    )
    traces = {pid_of(trace): trace for trace in folder.iterdir()}
    assert len(traces) == len(list(folder.iterdir())) == pythons + programs + forks
    for n in range(pythons):
        assert leaf_calls(dump(traces.pop(ended[n][0]))) == 100 + n
    made = Calls(tmp_path / "forks").by_process
    for n in range(programs):
        made.update(Calls(tmp_path / f"c{n}").by_process)
    assert traces.keys() == made.keys()
    for pid, trace in traces.items():
        counts = count_events(trace)
        assert is_whole(counts)
        assert sum(events["SYNC"] for events in counts["threads"].values()) == made[pid]

    # All of them in one report: what it is of, and what the others are.
    out = tare("report", folder, preexec_fn=limit_memory)[0].replace("\u00a0", " ")
    chosen = int(re.search(r"  pid (\d+)", out)[1])
    rows = re.findall(r"^(\S+) +(\d+) .* (no|yes)$", out[out.index("processes of this run") :], re.MULTILINE)
    assert len(rows) == 20 and (int(rows[0][1]), rows[0][2]) == (chosen, "yes")
    assert f"{pythons + programs + forks - 20} more" in out
    out = json.loads(tare("report", "--format", "json", folder, preexec_fn=limit_memory)[0])
    assert len(out["processes"]) == pythons + programs + forks
    assert sum(row["spans"] for row in out["processes"]) > sum(made.values())


def limit_memory():
    """Much less than what the traces' models take together."""
    resource.setrlimit(resource.RLIMIT_DATA, (24 << 20, 24 << 20))


# -------------------------------------------------------------------------------- what is not known


def test_what_is_missing_is_said(tmp_path):
    """The header counts it; every command says it."""
    path = tmp_path / "a.tare"
    generate(path, "--spans", 20_000)
    whole = path.read_bytes()
    for lost, negative, unseen, said in (
        (7, 0, 7, ["has nothing of 7 threads: "]),
        (9, 0, 7, ["has nothing of 7 threads: ", "lost 2 events"]),
        (0, 5, 0, []),
        (0, 30_000, 0, ["has wrong times: the clock was set back, 30000 events "]),
    ):
        data = bytearray(whole)
        struct.pack_into("<QQ", data, 104, lost, negative)
        struct.pack_into("<I", data, 132, unseen)
        path.write_bytes(data)
        for command in ("report", "ops", "syncs", "info", "dump"):
            out, errors = tare(command, path)
            assert all(line in errors for line in said) and bool(errors) == bool(said)
        assert all(line[:20] in out for line in said) or command == "dump"


# 580 MB of trace, 600 MB of memory; half a minute.
@pytest.mark.slow
def test_more_threads_than_there_is_room_for(tmp_path, run_traced, count_events, load_calls):
    run, _, traced = run_threads(tmp_path, run_traced, load_calls, 4300, 5)
    counts = count_events(run.trace)
    assert len(counts["threads"]) == 4096 and counts["lost"] == 4300 - 4096
    tids = threads_of(run.trace)
    for thread, events in counts["threads"].items():
        assert events["SYNC"] == traced.by_thread[tids[thread]]
    assert "has nothing of 204 threads" in tare("report", run.trace)[1]


# -------------------------------------------------------------------------------- short threads, killed


def test_ten_thousand_short_threads(tmp_path, run_bare_and_traced, count_events, program, cudart):
    """A few at a time: they share what room there is, and none is lost."""
    command = [program("load_short.c", *cudart()), 10_000, 4]
    run = run_bare_and_traced(command, returncode=0)
    counts = count_events(run.trace)
    assert is_whole(counts)
    calls = [events["SYNC"] for events in counts["threads"].values()]
    assert calls == [3] * 10_000
    # Its room is 130 KB a thread that lives; what is left of the others is a block of some bytes.
    assert run.trace.stat().st_size < 5 * (132 << 10) + 10_000 * 250
    out, _ = tare("info", run.trace)
    assert "10 000" in out.replace("\u00a0", " ")


def kill_threads(tmp_path, count_events, load_calls, moments, longest):
    """SIGKILL while 64 threads make calls: of each but the last 100 events are there."""
    for moment in range(moments):
        folder = tmp_path / str(moment)
        folder.mkdir()
        env = clean_environment({"LD_PRELOAD": LIBTARE, "TARE_OUTPUT": f"{folder}/x.tare"})
        command = [load_calls, folder / "counts", "100", "0", "64"]
        process = subprocess.Popen(command, env=env, stdin=subprocess.DEVNULL)
        while not (folder / "x.tare").exists() and process.poll() is None:
            time.sleep(0.001)
        time.sleep(random.uniform(0, longest))
        process.kill()
        process.wait()
        counts = count_events(folder / "x.tare")
        # What it was just writing is live as well; a piece of it may lie at the end.
        assert counts["lost"] == counts["damaged"] == counts["missing"] == 0
        tids, seen = threads_of(folder / "x.tare"), collections.Counter()
        for thread, events in counts["threads"].items():
            seen[tids[thread]] = events.get("SYNC", 0)
        for tid, made in Calls(folder / "counts").by_thread.items():
            assert made - 50 <= seen[tid] <= made
        shutil.rmtree(folder)


def test_64_threads_killed(tmp_path, count_events, load_calls):
    kill_threads(tmp_path, count_events, load_calls, 8, 0.3)


# Some 40 seconds.
@pytest.mark.slow
def test_64_threads_killed_at_many_moments(tmp_path, count_events, load_calls):
    kill_threads(tmp_path, count_events, load_calls, 50, 1.0)


# -------------------------------------------------------------------------------- limits


MAX_BYTES, DURATION = 1, 2
PLACE_BYTES = 132 << 10
HEADER_BYTES = 12288


def check_stopped(trace, counts, made, reason, limit=1 << 40):
    """Nothing half, nothing lost, nothing that was not called; every command reads it."""
    assert stop_of(trace) == reason
    assert trace.stat().st_size <= max(limit, HEADER_BYTES)
    assert is_whole(counts)
    tids = threads_of(trace)
    for thread, events in counts["threads"].items():
        calls = events.get("SYNC", 0)
        assert calls <= made[tids[thread]]
        assert 0 <= calls + events.get("TARE", 0) - events.get("LEAVE", 0) <= 2
    for command in ("report", "ops", "syncs", "info"):
        tare(command, trace)


@pytest.mark.parametrize("limit", [1, 4096, 1 << 20, 2300 << 10])
def test_max_bytes_of_threads(tmp_path, run_traced, count_events, load_calls, limit):
    """The last is reached when all threads have a place in the file; else one may get none for it in time."""
    env = {"TARE_MAX_BYTES": str(limit)}
    command = [load_calls, tmp_path / "counts", 0, 60_000, 16]
    run = run_traced(command, trace_env=env)
    assert (run.returncode, run.stdout, run.stderr) == (0, "0 failed\n", "")
    made = Calls(tmp_path / "counts").by_thread
    assert sorted(made.values()) == [60_000 + n for n in range(16)]
    counts = count_events(run.trace)
    check_stopped(run.trace, counts, made, MAX_BYTES, limit)
    places = max(0, limit - HEADER_BYTES) // PLACE_BYTES
    if places < 16:
        assert len(counts["threads"]) <= places
        assert run.trace.stat().st_size >= places * PLACE_BYTES
    else:
        assert len(counts["threads"]) == 16


def test_max_bytes_of_children(tmp_path, run_traced, count_events, load_calls):
    """Each has the limit for itself, whatever its parent has used."""
    env = {"TARE_MAX_BYTES": "300K"}
    run = run_traced([load_calls, tmp_path / "counts", 0, 100_000, 2, 8], trace_env=env)
    assert (run.returncode, run.stdout, run.stderr) == (0, "0 failed\n", "")
    made = Calls(tmp_path / "counts").by_thread
    assert len(run.traces) == 8
    for trace in run.traces:
        check_stopped(trace, count_events(trace), made, MAX_BYTES, 300 << 10)


@pytest.mark.parametrize("children", [0, 4])
def test_duration_of_threads(tmp_path, run_traced, count_events, load_calls, children):
    env = {"TARE_DURATION": "0.3"}
    command = [load_calls, tmp_path / "counts", 1, 0, 16 if not children else 4, children]
    run = run_traced(command, trace_env=env)
    assert (run.returncode, run.stdout, run.stderr) == (0, "0 failed\n", "")
    made = Calls(tmp_path / "counts").by_thread
    assert len(run.traces) == max(children, 1)
    for trace in run.traces:
        check_stopped(trace, count_events(trace), made, DURATION)


@pytest.mark.parametrize("kb", [150, 200, 250, 300, 400])
def test_max_bytes_within_imports(run_bare_and_traced, dump, python, kb):
    """Definitions above all: what is recorded has its name."""
    code = "import asyncio, ctypes, decimal, doctest, email.mime.text, http.server, pydoc, tarfile, unittest.mock"
    env = {"TARE_MAX_BYTES": f"{kb}K"}
    run = run_bare_and_traced([python, "-c", code], returncode=0, trace_env=env)
    assert stop_of(run.trace) == MAX_BYTES and run.trace.stat().st_size <= kb << 10
    trace = dump(run.trace)
    codes = {record["code"] for record in trace.records("CODE")}
    frames = trace.events("FRAME")
    assert frames and {frame["code"] for frame in frames} <= codes
    assert not trace.records("LOST")
    assert "lost      0 events" in tare("info", run.trace)[0]
