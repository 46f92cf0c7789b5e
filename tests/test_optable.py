"""tare ops: what is said of a pass, the part of an operator that does not grow with its data, order, options."""

import csv
import io
import json
import re
import subprocess

import pytest
from conftest import LIBTARE, PROG, TARE, clean_environment

PROGRAM = "optable_loops.py"
PARTS = [
    "python",
    "framework",
    "library",
    "launch",
    "copy",
    "memory",
    "gil",
    "wait",
    "fixed",
]
LOOPS = {"outer": 30, "inner": 120, "after": 50}


def lines():
    """{mark: number of the line with the comment `# line: mark`}."""
    marks = {}
    for number, line in enumerate((PROG / PROGRAM).read_text().splitlines(), 1):
        if mark := re.search(r"# line: (\w+)", line):
            marks[mark[1]] = number
    return marks


LINES = lines()


def tare(*args, status=0, columns=200):
    env = clean_environment({"COLUMNS": columns})
    done = subprocess.run(
        [TARE, *map(str, args)], capture_output=True, text=True, env=env, timeout=60
    )
    assert done.returncode == status, done.stderr
    return done.stdout if status == 0 else done.stderr


def ops(*args):
    return json.loads(tare("ops", "--format", "json", *args))["ops"]


def at(rows, mark):
    (row,) = [
        r
        for r in rows
        if r["kind"] == "operator" and r["site"] and r["site"]["line"] == LINES[mark]
    ]
    return row


@pytest.fixture(scope="module")
def trace(tmp_path_factory, python):
    folder = tmp_path_factory.mktemp("optable")
    env = clean_environment({"LD_PRELOAD": LIBTARE, "TARE_OUTPUT": f"{folder}/"})
    done = subprocess.run(
        [python, PROG / PROGRAM], env=env, capture_output=True, text=True
    )
    assert done.stdout == "done\n", done.stderr
    (trace,) = folder.glob("*.tare")
    return trace


# -------------------------------------------------------------------------------- a pass


@pytest.mark.parametrize(
    "loop, calls",
    [
        ("outer", {"small": 1, "large": 4, "after_mul": 0}),
        ("inner", {"small": 0, "large": 1, "after_mul": 0}),
        ("after", {"small": 0, "large": 0, "after_mul": 1}),
    ],
)
def test_all_of_a_pass_is_of_the_loop_that_was_named(trace, loop, calls):
    rows = ops("--loop", f"{PROGRAM}:{LINES[loop]}", trace)
    for mark, expected in calls.items():
        row = at(rows, mark)
        assert row["calls_per_pass"] == expected
        for part in PARTS:
            total = row["pass_ns"][part]
            if not expected:
                assert total == 0
            elif row[f"{part}_ns"] is None:
                assert total is None
            else:
                # All its calls are in that loop: their mean, the first one as the others.
                assert total == pytest.approx(
                    row[f"{part}_ns"]["mean"] * expected, rel=0.001, abs=1
                )
        known = row["pass_ns"]
        assert known["total"] == pytest.approx(
            known["fixed"] + (known["wait"] or 0), abs=1
        )


def test_what_does_not_belong_to_a_pass_stays(trace):
    """Medians, totals and first calls are of the whole run with any loop."""
    known = [ops("--loop", f"{PROGRAM}:{LINES[loop]}", trace) for loop in LOOPS]
    for row in known[0] + known[1] + known[2]:
        row.pop("pass_ns"), row.pop("calls_per_pass")
    assert known[0] == known[1] == known[2]
    row = at(known[0], "large")
    assert row["calls"] == 120 and row["first_ns"] > 0


def test_loops_agree(trace):
    """The inner loop's 120 passes are the outer one's 30."""
    totals = [
        at(ops("--loop", f"{PROGRAM}:{LINES[loop]}", trace), "large")["pass_ns"][
            "total"
        ]
        * passes
        for loop, passes in LOOPS.items()
    ]
    assert totals[0] == pytest.approx(totals[1], rel=0.001) and totals[2] == 0


def test_sums_of_a_pass_in_text(trace):
    loop = f"{PROGRAM}:{LINES['outer']}"
    text = tare("ops", "--by", "op,line", "--per-pass", "--loop", loop, trace)
    assert f"µs in a pass of {loop}" in text.splitlines()[1]
    (line,) = [
        line
        for line in text.splitlines()
        if re.search(rf"{PROGRAM}:{LINES['large']}\b", line)
    ]
    row = at(ops("--loop", loop, trace), "large")
    numbers = [float(word) for word in line.split() if re.fullmatch(r"[\d.]+", word)]
    assert pytest.approx(row["pass_ns"]["fixed"] / 1000, rel=0.01) in numbers
    assert "; a pass is of " in tare("ops", "--loop", loop, trace).splitlines()[1]
    for args in (
        ["--per-pass", "--loop", "elsewhere.py:1"],
        ["--loop", "elsewhere.py:1"],
    ):
        assert "no loop ran at elsewhere.py:1" in tare("ops", *args, trace, status=2)


def test_no_loop(tmp_path, python):
    env = clean_environment({"LD_PRELOAD": LIBTARE, "TARE_OUTPUT": f"{tmp_path}/"})
    subprocess.run(
        [python, "-c", "import torch; torch.ones(1).add(1)"], env=env, check=True
    )
    assert "there is no main loop" in tare("ops", "--per-pass", tmp_path, status=2)
    assert all(
        row["pass_ns"] is None and row["calls_per_pass"] is None
        for row in ops(tmp_path)
    )


# -------------------------------------------------------------------------------- the floor


def test_floor(trace):
    """What an addition costs without data: as one of a single element, also where there are a million."""
    rows = ops(trace)
    small, large = at(rows, "small"), at(rows, "large")
    assert small["op"] == large["op"]
    for row in (small, large):
        assert 0.5 < row["floor_ns"] / small["fixed_ns"]["median"] < 2
        assert re.fullmatch(
            r"lowest decile of \d+ calls at \d+ places, where it took least; sizes are not in a trace",
            row["floor_basis"],
        )
    assert large["floor_ns"] < large["fixed_ns"]["median"] / 5
    mul = at(rows, "after_mul")
    assert (mul["floor_ns"] is None) == mul["floor_basis"].startswith("unknown: ")
    # Only for what grows with its data.
    for row in rows:
        if row["kind"] != "operator":
            assert row["floor_ns"] is None and row["floor_basis"] is None
    by_line = ops("--by", "line", trace)
    assert all(row["floor_ns"] is None for row in by_line)


def test_floor_in_text_and_csv(trace):
    rows = list(csv.DictReader(io.StringIO(tare("ops", "--format", "csv", trace))))
    expected = ops(trace)
    assert [row["floor_basis"] for row in rows] == [
        row["floor_basis"] or "" for row in expected
    ]
    assert [row["floor_ns"] and float(row["floor_ns"]) for row in rows] == [
        "" if row["floor_ns"] is None else row["floor_ns"] for row in expected
    ]
    assert re.search(r"\bfloor\b", tare("ops", "--by", "op", trace).splitlines()[2])


# -------------------------------------------------------------------------------- what is no operator


def body(text):
    """The first column of the table's rows, below its heading."""
    return [
        line.split("  ")[0]
        for line in text.splitlines()[3:]
        if not line.startswith("…")
    ]


@pytest.mark.parametrize("sort", ["total", "calls", "name", "framework", "pass"])
@pytest.mark.parametrize("top", [3, 0])
def test_no_operator_comes_last(trace, sort, top):
    names = body(tare("ops", "--sort", sort, "--top", top, trace))
    assert names[-2:] == ["(no operator)", "all"]
    assert names.count("(no operator)") == 1 and (not top or len(names) == top + 2)
    kinds = [row["kind"] for row in ops("--sort", sort, trace)]
    assert kinds.count("none") > 0
    assert "none" not in kinds[: -kinds.count("none")]


def test_total_line(trace):
    rows = ops("--by", "op", trace)
    for top in (0, 2):
        *_, last = [
            line
            for line in tare("ops", "--by", "op", "--top", top, trace).splitlines()
            if line[0] != "…"
        ]
        assert last.split()[:2] == [
            "all",
            str(sum(row["calls"] for row in rows)).replace(",", " "),
        ]
    report = tare("report", trace)
    assert (
        report.index("\n(no operator)")
        < report.index("\nall  ")
        < report.index("\nnote:")
    )


# -------------------------------------------------------------------------------- options


def test_each_option_does_what_help_says(trace):
    help = " ".join(tare("ops", "--help").split())
    (keys,) = re.findall(r"--sort=KEY ([\w, ]+?): ", help)
    for key in keys.split(", "):
        tare("ops", "--sort", key, trace)
    said = tare("ops", "--sort", "size", trace, status=2)
    assert set(keys.split(", ")) == set(
        re.search(r"one of ([\w, ]+), not", said)[1].split(", ")
    )
    for key in ("op", "site", "line", "module", "thread"):
        rows = ops("--by", key, trace)
        assert sum(row["calls"] for row in rows) == sum(
            row["calls"] for row in ops(trace)
        )
    assert len(ops("--top", "2", trace)) == 2
    assert len(body(tare("ops", "--by", "op,site", "--top", "0", trace))) > 2
    assert any(row["kind"] == "nested" for row in ops("--nested", trace))
    assert not any(row["kind"] == "nested" for row in ops(trace))
    assert "what devices did is unknown" in tare("ops", "--device", trace)
    assert "what devices did" not in tare("ops", trace)
    options = set(re.findall(r"--([a-z-]+)", help))
    assert options == {
        "by",
        "sort",
        "top",
        "nested",
        "loop",
        "per-pass",
        "device",
        "format",
        "pid",
        "rank",
        "help",
    }
