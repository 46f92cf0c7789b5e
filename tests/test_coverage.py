"""What part of its process a trace is of: every command that shows something of a trace says so."""

import json
import re
import subprocess

import pytest
from conftest import LIBTARE, PROG, TARE, clean_environment

BUSY = PROG / "process_busy.py"
SHOW = ["report", "ops", "syncs", "info", "dump"]
OTHERS = ["record", "bench", "calibrate", "lib"]  # they take no traces
TIME = r"[\d.]+ (?:ns|µs|ms|s|min|h)"
FIRST = rf"covers the first ({TIME}) of ({TIME}): TARE_MAX_BYTES was reached"


def show(command, *args, columns=200):
    env = clean_environment({"COLUMNS": columns})
    words = [TARE, command, *map(str, args)]
    done = subprocess.run(words, capture_output=True, text=True, env=env, timeout=120)
    assert done.returncode == 0, done.stderr
    return done.stdout, done.stderr


def traced(folder, command, **knobs):
    env = {"LD_PRELOAD": LIBTARE, "TARE_OUTPUT": f"{folder}/", **knobs}
    subprocess.run(
        [str(word) for word in command],
        env=clean_environment(env),
        stdout=subprocess.DEVNULL,
    )
    (trace,) = folder.glob("*.tare")
    return trace


@pytest.fixture(scope="module")
def stopped(tmp_path_factory, python):
    folder = tmp_path_factory.mktemp("stopped")
    return traced(folder, [python, BUSY, "1500000"], TARE_MAX_BYTES="500K")


@pytest.fixture(scope="module")
def whole(tmp_path_factory, python):
    return traced(tmp_path_factory.mktemp("whole"), [python, BUSY, "1500000"])


def test_each_command_is_in_one_list():
    """A new command that shows traces must say it too: then it belongs into SHOW."""
    listed = re.findall(
        r"^  (\w+) ", subprocess.check_output([TARE, "help"], text=True), re.MULTILINE
    )
    assert sorted(listed) == sorted(SHOW + OTHERS)


@pytest.mark.parametrize("command", SHOW)
def test_the_first_of_all(stopped, command):
    text, said = show(command, stopped)
    assert len(re.findall(FIRST, text)) == 1
    assert re.search(
        rf"^tare: warning: {re.escape(str(stopped))}: {FIRST}$", said, re.MULTILINE
    )


@pytest.mark.parametrize("command", ["report", "ops", "syncs", "info"])
def test_in_json_and_csv(stopped, command):
    text, said = show(command, "--format", "json", stopped)
    found = json.loads(text)
    coverage = (
        found["traces"][0]["coverage"]
        if command == "info"
        else found["trace"]["coverage"]["text"]
    )
    (line,) = coverage
    assert re.fullmatch(FIRST, line) and line in said
    assert re.search(FIRST, show(command, "--format", "csv", stopped)[1])


def test_in_json_of_dump(stopped):
    *_, last = show("dump", "--format", "json", stopped)[0].splitlines()
    (line,) = json.loads(last)["coverage"]
    assert re.fullmatch(FIRST, line)
    # What is left out of the output does not change what the trace covers.
    for part in ("--records", "--events"):
        *_, last = show("dump", part, "--format", "json", stopped)[0].splitlines()
        assert json.loads(last)["coverage"] == [line]


@pytest.mark.parametrize("command", SHOW)
def test_nothing_of_a_whole_trace(whole, command):
    text, said = show(command, whole)
    assert "covers" not in text and "the trace" not in text and said == ""


def test_narrow_terminal(stopped):
    assert re.search(FIRST, " ".join(show("ops", stopped, columns=50)[0].split()))


def test_numbers_are_the_figures(stopped):
    found = json.loads(show("report", "--format", "json", stopped)[0])["trace"]
    coverage = found["coverage"]
    assert coverage["recorded_ns"] == found["wall_ns"] < coverage["lifetime_ns"]
    assert (
        coverage["stopped"] == "TARE_MAX_BYTES was reached" and not coverage["complete"]
    )


def test_killed_after_it_stopped(tmp_path, python):
    """How long the process lived is not known then."""
    code = f"import os, runpy, sys; sys.argv[1:] = ['1500000']; runpy.run_path({str(BUSY)!r}); os.kill(os.getpid(), 9)"
    trace = traced(tmp_path, [python, "-c", code], TARE_MAX_BYTES="500K")
    for command in SHOW:
        text = show(command, trace)[0]
        assert re.search(rf"covers the first {TIME}: TARE_MAX_BYTES was reached", text)


def test_duration_and_delay(tmp_path, python):
    code = "import json, time\nend = time.monotonic() + 1.6\nwhile time.monotonic() < end: json.dumps([1])"
    trace = traced(
        tmp_path, [python, "-c", code], TARE_DURATION="0.2", TARE_DELAY="0.7"
    )
    for command in SHOW:
        text = show(command, trace)[0]
        assert re.search(
            rf"covers {TIME} of {TIME}, from {TIME} after the start on: TARE_DURATION was over",
            text,
        )


def test_delay_alone(tmp_path, python):
    code = "import json, time\nend = time.monotonic() + 1.2\nwhile time.monotonic() < end: json.dumps([1])"
    trace = traced(tmp_path, [python, "-c", code], TARE_DELAY="0.7")
    for command in SHOW:
        assert re.search(
            rf"the trace begins {TIME} after the start of the process|coverage  begins",
            show(command, trace)[0],
        )


def test_cut_off(tmp_path, whole):
    """The end is lost, when it was is not: nothing is said of what came after what can be read."""
    cut = tmp_path / "cut.tare"
    cut.write_bytes(whole.read_bytes()[: whole.stat().st_size // 2])
    for command in SHOW:
        text = show(command, cut)[0]
        assert re.search(
            rf"is cut off or damaged, read as far as it goes: {TIME} of {TIME}", text
        )
    bare = tmp_path / "bare.tare"
    bare.write_bytes(whole.read_bytes()[:20000])
    found = json.loads(show("report", "--format", "json", bare)[0])
    assert found["trace"]["truncated"] and found["trace"]["coverage"]["text"]
    assert (
        found["trace"]["wall_ns"]
        < json.loads(show("report", "--format", "json", whole)[0])["trace"]["wall_ns"]
    )


def test_of_several_processes(tmp_path, stopped, whole):
    """Each on stderr; on stdout that of the one that is shown, the others in the table of processes."""
    text, said = show("report", stopped, whole)
    assert said.count("covers the first") == 1 and str(stopped) in said
    rows = json.loads(show("report", "--format", "json", stopped, whole)[0])[
        "processes"
    ]
    assert [row["stopped"] for row in rows] == ["TARE_MAX_BYTES was reached", None]
    assert "stopped early" in text


def test_gate_says_it(stopped):
    text, _ = show("syncs", "--fail-on", "hot", stopped)
    assert re.search(FIRST, text)
