"""Advice in `tare report`: each rule shows where a loop has the habit, and only there; prices add up."""

import json
import subprocess

import pytest
from conftest import PROG, TARE

SHOWS = PROG / "advice_shows.py"

# Of each loop: the rule that it shows, what a pass has of it, and by what it is priced.
EXPECTED = {
    "small_copies": ("small-copies", 6, "measured"),
    "hidden_sync": ("hidden-sync", 1, "measured"),
    "in_place": ("in-place", 2, "published"),
    "star_arguments": ("star-arguments", 40, "published"),
    "constant_lists": ("constant-lists", 40, "published"),
    "exceptions": ("exceptions", 2, "measured"),
}
NOTHING = ["kept_by_autograd", "ends_of_iterators"]


def loop_of(function):
    """The line of `for _ in steps` in that function of the program."""
    lines = SHOWS.read_text().splitlines()
    start = lines.index(f"def {function}():")
    return next(n + 1 for n in range(start, len(lines)) if lines[n] == "    for _ in steps:")


@pytest.fixture(scope="module")
def traces(tmp_path_factory, python):
    import conftest

    found = {}
    for habit in ("with", "without"):
        folder = tmp_path_factory.mktemp(habit)
        environment = conftest.clean_environment(
            {"LD_PRELOAD": conftest.LIBTARE, "TARE_OUTPUT": f"{folder}/"}
        )
        command = [PROG.parent / "sim" / "run", "--build", conftest.BUILD, "--", python, SHOWS, habit]
        if not (conftest.SIM / "lib").exists():
            pytest.skip("the simulated device is not built")
        done = subprocess.run([str(part) for part in command], env=environment, capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
        (found[habit],) = folder.glob("*.tare")
    return found


def report(trace, function, form="json"):
    done = subprocess.run(
        [TARE, "report", "--format", form, "--loop", f"{SHOWS.name}:{loop_of(function)}", trace],
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)["advice"] if form == "json" else done.stdout


@pytest.mark.parametrize("function", EXPECTED)
def test_shows(traces, function):
    rule, per_pass, basis = EXPECTED[function]
    found = {advice["rule"]: advice for advice in report(traces["with"], function)}
    advice = found[rule]
    assert set(found) - {rule} <= ({"small-copies", "hidden-sync"} if function == "small_copies" else set())
    assert advice["per_pass"] == pytest.approx(per_pass, abs=0.05)
    assert advice["basis"] == basis and advice["text"]
    assert 0 < advice["saves_ns"] <= advice["cost_ns"]
    for key in ("per_pass", "cost_ns", "saves_ns"):
        assert sum(place[key] for place in advice["places"]) == pytest.approx(advice[key], rel=0.01)
    assert all(place["site"]["file"] == str(SHOWS) for place in advice["places"])
    costs = [place["cost_ns"] for place in advice["places"]]
    assert costs == sorted(costs, reverse=True)
    text = report(traces["with"], function, "text")
    assert rule in text.split("advice, for a pass")[1]
    if basis == "published":
        assert "published figures" in " ".join(text.split())


@pytest.mark.parametrize("function", [*EXPECTED, *NOTHING])
def test_nothing_where_it_does_not_show(traces, function):
    assert {advice["rule"] for advice in report(traces["without"], function)} <= (
        {"hidden-sync"} if function == "small_copies" else set()
    )


@pytest.mark.parametrize("function", NOTHING)
def test_what_only_looks_like_it(traces, function):
    assert report(traces["with"], function) == []
