"""Passes of loops, on each interpreter: right, or unknown."""

import json
import re
import subprocess

import pytest
from conftest import PROG, TARE


@pytest.fixture
def main_loop():
    """main_loop(trace, place=None) → what the JSON says of the main loop, or of the one at a place."""

    def main_loop(trace, place=None):
        options = ["--loop", place] if place else []
        done = subprocess.run(
            [TARE, "syncs", "--format", "json", *options, trace], capture_output=True, text=True
        )
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout)["main_loop"]

    return main_loop


def test_passes(run_bare_and_traced, program, any_python, main_loop):
    path = program("loops_passes.py")
    run = run_bare_and_traced([any_python, "-I", path], returncode=0)
    wrong = []
    known = {}
    for number, line in enumerate(path.read_text().splitlines(), 1):
        expected = re.search(r"# PASSES (\d+)(\??)$", line)
        if not expected:
            continue
        if "while True" in line and run.stdout.startswith("3.9."):
            number += 1  # nothing in that bytecode tells of the line
        loop = main_loop(run.trace, f"{path.name}:{number}")
        known[number] = loop["passes"]
        fitting = {int(expected[1])}
        if "while f(n)" in line and run.stdout.startswith("3.9."):
            fitting.add(int(expected[1]) + 1)  # there the test that ends it is a turn
        right = loop["passes"] in fitting or (expected[2] and loop["passes"] is None)
        if not right:
            wrong.append((number, line.strip(), loop["passes"]))
    assert not wrong
    assert len(known) > 25


def test_no_such_loop(run_traced, program, any_python):
    run = run_traced([any_python, "-I", program("loops_passes.py")])
    for place in ("loops_passes.py:1", "other.py:5", "loops_passes.py:x"):
        done = subprocess.run([TARE, "syncs", "--loop", place, run.trace], capture_output=True, text=True)
        assert done.returncode == 2
        assert done.stderr.count("\n") == 1 and place in done.stderr


MAIN = re.compile(r"# MAIN (\w+) (\d+)$")
MAIN_LOOPS = {
    found[1]: (number, int(found[2]))
    for number, line in enumerate((PROG / "loops_main.py").read_text().splitlines(), 1)
    if (found := MAIN.search(line))
}


@pytest.mark.parametrize("name", MAIN_LOOPS)
def test_main_loop(name, run_traced, program, python, main_loop):
    line, passes = MAIN_LOOPS[name]
    run = run_traced([python, program("loops_main.py"), name])
    loop = main_loop(run.trace)
    assert (loop["line"], loop["passes"]) == (line, passes)


def test_equal_loops(run_traced, program, python):
    """The one that ran first, unless another has more than a tenth more time."""
    path = program("loops_main.py")
    lines = [n for n, line in enumerate(path.read_text().splitlines(), 1) if line.endswith("# EQUAL")]
    for _ in range(3):
        run = run_traced([python, path, "equal"])
        done = subprocess.run([TARE, "report", "--format", "json", run.trace], capture_output=True, check=True)
        loops = [loop for loop in json.loads(done.stdout)["loops"] if loop["line"] in lines]
        assert sorted(loop["line"] for loop in loops) == lines
        assert all(loop["passes"] == 40 for loop in loops)
        first, second = (next(loop for loop in loops if loop["line"] == line) for line in lines)
        # Where the machine did something else for long, neither need have half of the time.
        wanted = second if 0.9 * second["total_ns"] > first["total_ns"] else first
        if wanted["share"] >= 0.45:
            assert [loop["line"] for loop in loops if loop["main"]] == [wanted["line"]]
