"""tare report and tare ops: what they say of known programs, in all formats; what they refuse."""

import collections
import csv
import io
import json
import os
import re
import shutil
import signal
import subprocess

import pytest
from conftest import BUILD, LIBTARE, PROG, ROOT, TARE, clean_environment

GOLDEN = ROOT / "tests" / "golden"
LEDGER = [
    "python_user_ns", "python_library_ns", "framework_ns", "library_ns", "launch_ns", "copy_ns",
    "memory_ns", "wait_ns", "gil_ns", "tare_ns", "other_ns", "handover_ns",
]  # fmt: skip
PARTS = [
    "python_ns", "framework_ns", "library_ns", "launch_ns", "copy_ns", "memory_ns", "gil_ns",
    "wait_ns", "fixed_ns",
]  # fmt: skip


def tare(*args, status=0, env=None):
    command = [TARE, *map(str, args)]
    done = subprocess.run(command, check=False, capture_output=True, timeout=120, env=env)
    out, err = done.stdout.decode(), done.stderr.decode()
    assert done.returncode == status, err
    return out, err


def report(*args):
    return json.loads(tare("report", "--format", "json", *args)[0])


def ops(*args):
    return json.loads(tare("ops", "--format", "json", *args)[0])["ops"]


def lines_of(program):
    """{mark: number of the line with the comment `# line: mark`}."""
    text = (PROG / program).read_text().splitlines()
    marks = ((re.search(r"# line: (\w+)", line), number) for number, line in enumerate(text, 1))
    return {mark[1]: number for mark, number in marks if mark}


def check_ledger(ledger):
    assert list(ledger) == ["wall_ns", *LEDGER]
    known = [ledger[line] for line in LEDGER if ledger[line] is not None]
    assert min(known) >= 0
    assert abs(sum(known) - ledger["wall_ns"]) <= 0.0001 * ledger["wall_ns"] + 10


def check_report(found):
    """What holds for every trace."""
    assert {"trace", "ledger", "loops", "ops", "syncs", "still_open", "processes", "notes"} <= set(found)
    trace = found["trace"]
    assert {
        "files", "pid", "python", "torch", "cuda", "wall_ns", "threads", "spans", "bytes", "lost",
        "truncated", "layers", "coverage",
    } <= set(trace)  # fmt: skip
    check_ledger(found["ledger"])
    assert found["ledger"]["wall_ns"] == trace["wall_ns"]
    parts = [found[part] for part in ("startup", "program", "exit") if found[part]]
    for part in parts:
        check_ledger(part)
    assert abs(sum(part["wall_ns"] for part in parts) - trace["wall_ns"]) <= 10
    for thread in found["thread_ledgers"]:
        check_ledger(thread["ledger"])
    for row in found["ops"]:
        assert {"op", "site", "user_site", "calls", "calls_per_pass", "launches", "total_ns", "share"} <= set(row)
        for part in PARTS:
            assert row[part] is None or set(row[part]) == {"p10", "median", "mean"}
        assert row["calls"] > 0
    launches = sum(row["launches"] for row in found["ops"])
    assert launches == trace["launches"]
    # What later versions tell is unknown, not 0.
    assert found["own_weight_ns"] is None and found["own_weight"]["source"] is None
    assert sum(loop["main"] for loop in found["loops"]) <= 1
    for loop in found["loops"]:
        assert loop["ledger"] is None or set(loop["ledger"]) == set(found["ledger"])
    assert isinstance(found["syncs"], list)


def event_counts(trace):
    """Counter of (event, name) of the events with a definition; of the others, (event, None)."""
    counts = collections.Counter()
    command = [TARE, "dump", "--events", trace]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        for line in process.stdout:
            if " FRAME " in line or " LEAVE " in line:
                continue
            name = re.search(r" (?:op|type|function)=\d+:(\S+)", line)
            counts[line.split()[3], name and name[1]] += 1
    return counts


@pytest.fixture(scope="session")
def steps(tmp_path_factory, python, sim):
    """The traces of report_steps.py on the simulated device: one folder for all tests."""
    folder = tmp_path_factory.mktemp("steps")
    # Slow enough for the reads to wait.
    env = {"LD_PRELOAD": LIBTARE, "TARE_OUTPUT": f"{folder}/", "TARE_SIM_KERNEL_US": 200}
    env = clean_environment(env)
    command = [str(part) for part in sim([python, PROG / "report_steps.py"])]
    done = subprocess.run(command, env=env, check=True, capture_output=True, text=True)
    assert done.stdout == "done\n"
    return folder


def generate(path, *args):
    command = [BUILD / "tests" / "tare_gen", path, *map(str, args)]
    return json.loads(subprocess.run(command, check=True, capture_output=True).stdout)


# ------------------------------------------------------------------------------------ known programs


def test_operators_of_a_program(steps):
    found, line = report(steps), lines_of("report_steps.py")
    check_report(found)
    assert found["trace"]["program"] == "report_steps.py"
    assert found["trace"]["cuda"].startswith("libcudart.so.")
    assert not found["trace"]["truncated"] and found["trace"]["lost"] == 0
    here = {}
    for row in found["ops"]:
        if row["kind"] in ("none", "call"):
            continue
        if row["site"] and row["site"]["file"].endswith("report_steps.py"):
            assert row["user_site"] == row["site"]
            key = (row["op"], row["site"]["line"], row["site"]["function"].split(".")[-1])
            assert key not in here
            here[key] = row

    def check(op, mark, function="main", calls=10, launches=None):
        row = here[op, line[mark], function]
        assert row["calls"] == calls
        if launches is not None:
            assert row["launches"] == launches
        return row

    add = check("aten::add.Tensor", "add", launches=10)
    assert add["kind"] == "operator"
    assert all(add[part] for part in PARTS)
    assert add["library_ns"]["mean"] == 0
    assert add["calls_per_pass"] in (None, 1)  # the main loop has half of the time, or there is none
    check("aten::mul.Tensor", "scale", "scale", launches=10)
    check("aten::sum", "sum", launches=10)
    item = check("aten::item", "item", launches=0)
    assert item["wait_ns"]["mean"] > 0
    # Backward nodes are at the forward operator's place.
    assert check("MulBackward0", "scale", "scale")["kind"] == "backward"
    check("AddBackward0", "add")
    sum_row = check("SumBackward0", "sum")
    assert sum_row["python_ns"] is None and sum_row["framework_ns"]["mean"] > 0
    # A library's site, and the line of ours that led to it.
    linear = [row for row in found["ops"] if row["op"] == "aten::linear"]
    assert len(linear) == 1 and linear[0]["site"]["function"].split(".")[-1] == "forward"
    assert linear[0]["user_site"]["line"] == line["linear"]
    assert [(r["name"], r["count"]) for r in found["ranges"]] == [("my range", 1)]


def test_nothing_is_counted_twice(steps):
    trace = next(steps.glob("*.tare"))
    events, found = event_counts(trace), collections.Counter()
    nested = ops("--nested", "--by", "op", trace)
    for row in nested:
        found[row["op"]] += row["calls"]
    names = collections.Counter()
    for (event, symbol), count in events.items():
        if event in ("OP", "OP_SPAN"):
            names[symbol] += count
    operators = sum(row["calls"] for row in nested if row["kind"] in ("operator", "nested"))
    assert operators == sum(names.values())
    assert found["aten::add.Tensor"] == sum(
        count for symbol, count in names.items() if symbol.startswith("_ZN2at4_ops10add_Tensor4call")
    )
    backward = sum(row["calls"] for row in nested if row["kind"] == "backward")
    assert backward == sum(count for (event, _), count in events.items() if event == "NODE")
    launches = sum(row["launches"] or 0 for row in nested)
    assert launches == sum(count for (event, _), count in events.items() if event == "LAUNCH")
    for row in nested:
        if row["kind"] == "nested":
            assert row["parent"] and row["total_ns"] is None and row["fixed_ns"] is None


@pytest.mark.parametrize("keys", ["op", "site", "line", "module", "thread", "op,thread", "op,line"])
def test_grouping_loses_nothing(steps, keys):
    rows, all_rows = ops("--by", keys, steps), ops(steps)
    for column in ("calls", "launches", "total_ns"):
        total = sum(row[column] for row in all_rows)
        assert abs(sum(row[column] for row in rows) - total) <= 1e-6 * total
    # What is no operator comes last.
    last = [row["kind"] == "none" and "op" in keys.split(",") for row in rows]
    assert last == sorted(last)
    order = [(none, -row["total_ns"]) for none, row in zip(last, rows)]
    assert order == sorted(order)
    known = {"op": "op", "site": "site", "line": "user_site", "module": "module", "thread": "thread"}
    for key, name in known.items():
        if key not in keys.split(","):
            assert all(row[name] is None for row in rows)
    tare("ops", "--by", keys, steps)


def test_sorting_and_top(steps):
    for key, value in {
        "calls": lambda row: -row["calls"],
        "launches": lambda row: -row["launches"],
        "first": lambda row: -row["first_ns"],
        "framework": lambda row: -row["framework_ns"]["mean"],
        "name": lambda row: row["op"],
    }.items():
        rows = [value(row) for row in ops("--by", "op", "--sort", key, steps) if row["kind"] != "none"]
        assert rows == sorted(rows)
    assert len(ops("--top", "3", steps)) == 3
    assert len(ops("--top", "0", steps)) == len(ops(steps)) > 3


def test_python_without_torch(run_traced, python):
    result = run_traced([python, "-c", "import json\nfor i in range(1000): json.dumps([i])"])
    found = report(result.trace)
    check_report(found)
    assert found["trace"]["torch"] is None and found["trace"]["program"] == "-c"
    assert found["ledger"]["python_library_ns"] > 0 and found["ledger"]["python_user_ns"] > 0
    assert found["ops"] == []
    assert "cost by operator" not in tare("report", result.trace)[0]


def test_killed_program_shows_where_it_hung(tmp_path, python):
    env = clean_environment({"LD_PRELOAD": LIBTARE, "TARE_OUTPUT": f"{tmp_path}/"})
    command = [python, PROG / "report_hangs.py"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, env=env) as process:
        assert process.stdout.readline() == b"hanging\n"
        process.send_signal(signal.SIGKILL)
    found = report(tmp_path)
    check_report(found)
    assert found["trace"]["coverage"]["ended"] is None
    (hung,) = found["still_open"]
    assert hung["kind"] == "frame" and hung["innermost"].endswith("hang")
    assert hung["open"] >= 6 and hung["user_site"]["file"].endswith("report_hangs.py")
    text = tare("report", tmp_path)[0]
    assert "still open at the end" in text and "report_hangs.py" in text


def test_processes_of_a_run(tmp_path):
    generate(tmp_path / "small.tare", "--spans", 1000)
    generate(tmp_path / "large.tare", "--spans", 20000)
    found = report(tmp_path)
    check_report(found)
    chosen = [p for p in found["processes"] if p["chosen"]]
    assert len(found["processes"]) == 2 and len(found["trace"]["files"]) == 2
    assert [p["file"].split("/")[-1] for p in chosen] == ["large.tare"]
    assert chosen[0]["launches"] == max(p["launches"] for p in found["processes"])
    small = next(p for p in found["processes"] if not p["chosen"])
    assert report("--pid", small["pid"], tmp_path)["trace"]["pid"] == small["pid"]
    text = tare("report", tmp_path / "small.tare", tmp_path / "large.tare")[0]
    assert "processes of this run" in text and str(small["pid"]) in text
    assert "no trace of process 1 " in tare("report", "--pid", 1, tmp_path, status=2)[1]
    # A bad file among good ones is told of, and left out.
    shutil.copy(GOLDEN / "bad" / "text.tare", tmp_path / "text.tare")
    out, err = tare("report", "--format", "json", tmp_path)
    assert err.count("\n") == 1 and "text.tare" in err
    assert len(json.loads(out)["processes"]) == 2


def test_rank_chooses(tmp_path, python):
    for rank in ("0", "1"):
        env = clean_environment({"LD_PRELOAD": LIBTARE, "TARE_OUTPUT": f"{tmp_path}/", "RANK": rank})
        subprocess.run([python, "-c", "pass"], env=env, check=True)
    assert report("--rank", 1, tmp_path)["trace"]["rank"] == "1"
    assert report("--rank", 0, tmp_path)["trace"]["rank"] == "0"
    assert "rank 7" in tare("report", "--rank", 7, tmp_path, status=2)[1]


def test_counts_of_a_generated_trace(tmp_path):
    made = generate(tmp_path / "a.tare", "--spans", 200000, "--plain")
    found = report(tmp_path / "a.tare")
    check_report(found)
    # The writer's own spans, one for each block that it wrote, come on top.
    assert 0 <= found["trace"]["spans"] - made["spans"] < 100
    assert found["trace"]["lost"] == 0
    rows = ops("--nested", "--by", "op", tmp_path / "a.tare")
    operators = [row for row in rows if row["kind"] in ("operator", "nested")]
    assert sum(row["calls"] for row in operators) == sum(made["ops"].values())
    # Spans that overlap are not added up.
    assert sum(row["total_ns"] or 0 for row in rows) <= found["trace"]["wall_ns"]


# ------------------------------------------------------------------------------------ formats


def text_of(*args, columns=None, **env):
    environment = {**clean_environment(env), **({"COLUMNS": str(columns)} if columns else {})}
    return tare(*args, env=environment)[0]


@pytest.mark.parametrize("columns", [60, 80, 100, 120, 200])
@pytest.mark.parametrize(
    "command", [["report"], ["ops"], ["ops", "--by", "line"], ["ops", "--nested"], ["syncs"], ["info"]]
)
def test_text_fits_the_terminal(steps, columns, command):
    if command == ["info"]:
        columns = max(columns, 80)
    text = text_of(*command, steps, columns=columns)
    assert "\x1b" not in text
    for line in text.splitlines():
        assert line == line.rstrip()
        # What tare info tells is not broken within a word: paths, symbols.
        assert len(line) <= columns or (command == ["info"] and len(line.split()[-1]) > columns - 36)


def test_first_screen(steps):
    text = text_of("report", steps, columns=80)
    head = text.splitlines()[0]
    assert head.startswith("report_steps.py  pid ") and " wall " in head
    for words in ("python, your code", "framework", "launch", "waiting for the GPU", "all", "not calibrated"):
        assert words in text
    for column in ("calls", "python", "framework", "launch", "fixed", "wait", "share"):
        assert re.search(rf"^ .*\b{column}\b", text, re.MULTILINE)


def in_terminal(command, env):
    """Runs it with a terminal as its output; returns what it printed."""
    master, slave = os.openpty()
    with subprocess.Popen(command, stdout=slave, stderr=slave, env=env) as process:
        os.close(slave)
        pieces = []
        while True:
            try:
                piece = os.read(master, 65536)
            except OSError:
                break
            if not piece:
                break
            pieces.append(piece)
        assert process.wait() == 0
    os.close(master)
    return b"".join(pieces).decode()


def test_colour_on_a_terminal_alone(steps):
    command = [TARE, "report", steps]
    assert "\x1b[1m" in in_terminal(command, clean_environment({"TERM": "xterm"}))
    for env in ({"TERM": "xterm", "NO_COLOR": "1"}, {"TERM": "dumb"}):
        assert "\x1b" not in in_terminal(command, clean_environment(env))


def test_csv(steps):
    rows = list(csv.DictReader(io.StringIO(tare("ops", "--format", "csv", steps)[0])))
    expected = ops(steps)
    assert len(rows) == len(expected)
    unknown = 0
    for row, other in zip(rows, expected):
        assert row["op"] == other["op"] and int(row["calls"]) == other["calls"]
        assert float(row["library_ns.median"]) >= 0
        if other["framework_ns"] is None:
            assert row["framework_ns.median"] == row["fixed_ns.median"] == "" and other["fixed_ns"] is None
            unknown += 1
        else:
            assert float(row["framework_ns.median"]) == other["framework_ns"]["median"]
    # Of operators outside of sections alone.
    assert unknown < len(rows) / 2
    assert tare("report", "--format", "csv", steps)[0].startswith("op,")


def test_csv_of_info(steps):
    rows = list(csv.DictReader(io.StringIO(tare("info", "--format", "csv", steps)[0])))
    assert {"file", "pid", "thread", "name", "tid", "events", "spans"} <= set(rows[0])
    found = json.loads(tare("info", "--format", "json", steps)[0])["traces"]
    assert [int(row["tid"]) for row in rows] == [one["tid"] for trace in found for one in trace["threads"]]


def test_threads_of_one_name_are_told_apart(tmp_path, python):
    code = (
        "import threading, torch\n"
        "def work(): torch.ones(3)\n"
        "threads = [threading.Thread(target=work) for _ in range(2)]\n"
        "[t.start() for t in threads]; [t.join() for t in threads]"
    )
    env = clean_environment({"LD_PRELOAD": LIBTARE, "TARE_OUTPUT": f"{tmp_path}/"})
    subprocess.run([python, "-c", code], env=env, check=True)
    rows = json.loads(tare("ops", "--by", "thread", "--format", "json", tmp_path)[0])["ops"]
    names = [row["thread"] for row in rows]
    assert len(names) >= 2 and len(set(names)) == len(names)


def test_thread_to_dump(steps):
    (trace,) = steps.glob("*.tare")
    assert tare("dump", "--thread", "1", trace)[0]
    out, err = tare("dump", "--thread", "99", trace, status=2)
    assert out == "" and "no thread 99" in err and err.count("\n") == 1


def test_names_cannot_drive_the_terminal(run_traced, python):
    source = "exec(compile('def f():\\n  while True: pass', 'e\\x1b[31mvil\\x07\\u202e.py', 'exec'))\n"
    source += "import os, signal, threading\n"
    source += "threading.Timer(0.2, os.kill, (os.getpid(), signal.SIGKILL)).start()\nf()\n"
    result = run_traced([python, "-c", source])
    text = tare("report", result.trace)[0]
    assert "\\x1b[31mvil\\x07\\u202e.py" in text
    assert not re.search("[\x00-\x09\x0b-\x1f\x7f\u202e]", text)
    (hung,) = [t for t in report(result.trace)["still_open"] if t["innermost"] == "f"]
    assert hung["site"]["file"] == "e\x1b[31mvil\x07\u202e.py"


# ------------------------------------------------------------------------------------ what is refused


@pytest.mark.parametrize("command", ["report", "ops"])
def test_wrong_usage(command, tmp_path):
    empty, text = tmp_path / "empty.tare", tmp_path / "text.txt"
    empty.touch()
    text.write_text("hello\n")
    for args, said in {
        (): "which trace",
        (tmp_path / "missing.tare",): "No such file",
        (empty,): "empty",
        (text,): "not a tare trace",
        (ROOT / "scripts",): "no traces",
        (GOLDEN / "bad" / "newer.tare",): "newer tare",
        (GOLDEN / "bad" / "cut-header.tare",): "record it again",
        ("--nonsense", text): "--nonsense",
        ("--format", "xml", text): "text, json or csv",
        ("--format",): "--format",
        ("--top", "-1", text): "--top",
        ("--pid", "x", text): "--pid",
    }.items():
        out, err = tare(command, *args, status=2)
        assert out == "" and err.count("\n") == 1 and err.startswith("tare: ")
        assert said in err
    assert "Usage: tare " + command in tare(command, "--help")[0]


def test_wrong_usage_of_ops(steps):
    for args, said in {
        ("--by", "colour"): "--by",
        ("--sort", "size"): "--sort",
        ("--loop", "train.py"): "FILE:LINE",
        ("--loop", "elsewhere.py:31"): "no loop ran at elsewhere.py:31",
    }.items():
        out, err = tare("ops", *args, steps, status=2)
        assert out == "" and err.count("\n") == 1 and said in err


def test_unknown_subcommand():
    assert "'frobnicate'" in tare("frobnicate", status=2)[1]
    tare(status=2)
    for words in ("report", "ops", "Exit status"):
        assert words in tare("help")[0]


def test_output_that_cannot_be_written(steps):
    with open("/dev/full", "w") as full:
        done = subprocess.run([TARE, "report", steps], stdout=full, stderr=subprocess.PIPE, check=False)
    assert done.returncode == 2 and done.stderr.count(b"\n") == 1


@pytest.mark.parametrize("name", ["finished", "unfinished", "blocks"])
def test_cut_traces(name, tmp_path):
    whole = (GOLDEN / "v1" / f"{name}.tare").read_bytes()
    for length in range(0, len(whole), 1000):
        path = tmp_path / "cut.tare"
        path.write_bytes(whole[:length])
        command = [TARE, "report", "--format", "json", path]
        done = subprocess.run(command, capture_output=True, check=False, timeout=60)
        if done.returncode == 0:
            found = json.loads(done.stdout)
            check_ledger(found["ledger"])
            assert not found["trace"]["truncated"] or b"warning" in done.stderr
        else:
            assert done.returncode == 2 and done.stderr.count(b"\n") == 1


def test_flipped_bytes(tmp_path):
    whole = bytearray((GOLDEN / "v1" / "blocks.tare").read_bytes())
    for place in range(0, len(whole), 501):
        flipped = bytearray(whole)
        flipped[place] ^= 0x55
        path = tmp_path / "flipped.tare"
        path.write_bytes(flipped)
        command = [TARE, "report", "--format", "json", path]
        done = subprocess.run(command, capture_output=True, check=False, timeout=60)
        assert done.returncode in (0, 2), done.returncode
        if done.returncode == 0:
            check_ledger(json.loads(done.stdout)["ledger"])


def test_late_imports_are_start_up(run_bare_and_traced, program, python):
    """Of a function's own `import`, in the third pass: neither the program's time nor the loop's."""
    run = run_bare_and_traced([python, program("late_import.py")], returncode=0)
    found = report(run.trace)
    check_report(found)
    late = found["late_import_ns"]
    loop = found["loops"][0]
    assert loop["passes"] == 5
    assert 0 < late < found["startup"]["wall_ns"]
    # In no pass, and the loop is all that the program does.
    assert loop["total_ns"] <= found["program"]["wall_ns"]
    assert loop["pass_ns"]["first"] > 0
