"""tare calibrate: what is measured and kept, who reads it, and what happens where that does not work."""

import json
import os
import shutil
import subprocess
import sys

import pytest
from conftest import BUILD, LIBTARE, TARE, clean_environment

KINDS = {"frame", "generator", "call", "launch", "copy", "set", "memory", "sync", "mark", "gil", "section",
         "callback", "node", "op", "op_span"}


def environment(cache, **more):
    found = clean_environment({"XDG_CACHE_HOME": cache, **more})
    if "TARE_CALIBRATION" not in more:
        del found["TARE_CALIBRATION"]
    return found


def run(*command, cache, status=0, **more):
    done = subprocess.run([str(part) for part in command], env=environment(cache, **more), capture_output=True,
                          text=True, cwd=cache)
    assert done.returncode == status, done.stderr
    return done


def kept(cache):
    return sorted((cache / "tare").glob("calibration-*")) if (cache / "tare").is_dir() else []


def calibrations(trace):
    done = subprocess.run([TARE, "dump", "--format", "json", trace], check=True, capture_output=True, text=True)
    return [item for line in done.stdout.splitlines() if (item := json.loads(line)).get("record") == "CALIBRATION"]


def report(trace, cache, **more):
    return json.loads(run(TARE, "report", "--format", "json", trace, cache=cache, **more).stdout)


def traced(cache, **more):
    """A trace of a small program by plain LD_PRELOAD."""
    trace = cache / f"{len(list(cache.glob('*.tare')))}.tare"
    run(sys.executable, "-c", "def f(): pass\nfor _ in range(2000): f()", cache=cache, LD_PRELOAD=LIBTARE,
        TARE_OUTPUT=trace, **more)
    return trace


@pytest.fixture(scope="module")
def measured(tmp_path_factory):
    """A cache in which this interpreter's calibration is, and what was said."""
    cache = tmp_path_factory.mktemp("cache")
    done = run(TARE, "calibrate", "--format", "json", sys.executable, cache=cache)
    return cache, json.loads(done.stdout)


def test_what_is_measured(measured):
    cache, said = measured
    assert [said["file"]] == [str(path) for path in kept(cache)]
    assert said["python"] == os.path.realpath(sys.executable)
    assert {weight["kind"] for weight in said["weights"]} == KINDS
    for weight in said["weights"]:
        assert 0 <= weight["inside_ns"] < 1e5 and 0 <= weight["outside_ns"] < 1e5 and weight["error_ns"] >= 0
    frames = [weight for weight in said["weights"] if weight["kind"] == "frame"]
    assert len({weight["distance"] for weight in frames}) >= 2
    assert len({weight["interval_ns"] for weight in frames}) == 2
    # Generators are made where functions are called, and resumed in another way.
    ways = [{weight["distance"] for weight in said["weights"] if weight["kind"] == kind} - {0}
            for kind in ("frame", "generator")]
    assert len(ways[0]) >= 4 and ways[0] & ways[1] and ways[1] - ways[0]


def test_in_the_trace(measured):
    """Plain LD_PRELOAD reads it; reports take it out, and their lines still add up."""
    cache, said = measured
    trace = traced(cache)
    found = calibrations(trace)
    assert len(found) == len(said["weights"]) and {item["source"] for item in found} == {"calibrated"}
    own = report(trace, cache)["own_weight"]
    assert own["calibrated"] and own["source"] == "calibrated"
    assert 0 < own["uncertainty_ns"] < own["weight_ns"]
    ledger = report(trace, cache)["ledger"]
    assert ledger["tare_ns"] >= own["weight_ns"] > 2000
    assert abs(sum(ledger.values()) - 2 * ledger["wall_ns"]) < 20
    text = run(TARE, "report", trace, cache=cache).stdout
    assert "not calibrated" not in text


def test_later(measured, tmp_path):
    """A trace that has none is read by what this machine keeps for its interpreter, and says so."""
    cache, _ = measured
    trace = traced(tmp_path)
    assert [item["source"] for item in calibrations(trace)] == ["start"]
    own = report(trace, tmp_path)["own_weight"]
    assert not own["calibrated"] and own["weight_ns"] > 0
    assert "not calibrated" in run(TARE, "report", trace, cache=tmp_path).stdout
    own = report(trace, cache)["own_weight"]
    assert own["calibrated"] and "this machine" in own["source"]
    assert "kept for that interpreter" in " ".join(report(trace, cache)["notes"])


def test_none(measured):
    cache, _ = measured
    trace = traced(cache, TARE_CALIBRATION="none")
    assert calibrations(trace) == []


def test_a_file_of_ones_own(measured, tmp_path):
    cache, said = measured
    file = tmp_path / "mine"
    shutil.copy(kept(cache)[0], file)
    trace = traced(tmp_path, TARE_CALIBRATION=file)
    assert len(calibrations(trace)) == len(said["weights"])
    trace = traced(tmp_path, TARE_CALIBRATION=tmp_path / "missing")
    assert [item["source"] for item in calibrations(trace)] == ["start"]


def cut(text):
    return text[: len(text) // 2]


@pytest.mark.parametrize("damage", [
    cut,
    lambda text: "",
    lambda text: text.replace("tare calibration 1", "tare calibration 2"),
    lambda text: text.replace("libtare ", "libtare f"),
    lambda text: text.replace("weight frame", "weight -frame"),
    lambda text: text + "weight frame 0 1 1 1 1\n",
    lambda text: text.replace("end\n", "\0" * 20000),
], ids=["cut", "empty", "version", "build", "word", "behind", "zeros"])
def test_damaged(measured, tmp_path, damage):
    """Anything but a whole file of this very interpreter is as if there were none."""
    cache, _ = measured
    (tmp_path / "tare").mkdir()
    source = kept(cache)[0]
    (tmp_path / "tare" / source.name).write_text(damage(source.read_text()))
    trace = traced(tmp_path)
    assert [item["source"] for item in calibrations(trace)] == ["start"]
    assert not report(trace, tmp_path)["own_weight"]["calibrated"]


def test_not_a_file(measured, tmp_path):
    """A folder, a pipe, or no right to read it."""
    cache, _ = measured
    name = kept(cache)[0].name
    for make in (lambda path: path.mkdir(parents=True), os.mkfifo):
        place = tmp_path / "tare" / name
        place.parent.mkdir(exist_ok=True)
        make(place)
        trace = traced(tmp_path)
        assert [item["source"] for item in calibrations(trace)] == ["start"]
        place.rmdir() if place.is_dir() else place.unlink()


def record(cache, *options, **more):
    return run(TARE, "record", "-o", f"{cache}/r.tare", *options, "--", sys.executable, "-c", "print('done')",
               cache=cache, **more)


def test_first_use(tmp_path):
    """One line says so; the program's output is its own; the second time nothing is measured."""
    done = record(tmp_path)
    assert done.stdout == "done\n"
    assert len(kept(tmp_path)) == 1
    lines = [line for line in done.stderr.splitlines() if "--no-calibrate" in line]
    assert len(lines) == 1 and os.path.realpath(sys.executable) in lines[0]
    assert {item["source"] for item in calibrations(tmp_path / "r.tare")} == {"calibrated"}
    (tmp_path / "r.tare").unlink()
    assert "--no-calibrate" not in record(tmp_path).stderr


def test_not_at_first_use(tmp_path):
    assert "measuring" not in record(tmp_path, "--no-calibrate").stderr and not kept(tmp_path)
    assert "measuring" not in record(tmp_path, "--calibration", "none").stderr and not kept(tmp_path)
    done = run(TARE, "record", "-o", tmp_path / "x.tare", "--", "true", cache=tmp_path)
    assert "measuring" not in done.stderr and not kept(tmp_path)


def test_cannot_be_kept(tmp_path):
    """The program runs all the same."""
    (tmp_path / "tare").write_text("in the way")
    done = record(tmp_path)
    assert done.stdout == "done\n"
    assert "that is not known" in done.stderr
    done = run(TARE, "calibrate", sys.executable, cache=tmp_path, status=2)
    assert len(done.stderr.splitlines()) == 1
    done = subprocess.run([TARE, "calibrate", sys.executable], env={"PATH": os.environ["PATH"]},
                          capture_output=True, text=True)
    assert done.returncode == 2 and "HOME" in done.stderr


@pytest.mark.parametrize("arguments", [
    ["/bin/true"], ["no-such-python"], ["--format", "xml"], ["python3", "python3"]])
def test_wrong_usage(tmp_path, arguments):
    done = run(TARE, "calibrate", *arguments, cache=tmp_path, status=2)
    assert len(done.stderr.splitlines()) == 1 and done.stderr.startswith("tare")
    assert not kept(tmp_path)


def test_passes_are_without_it(tmp_path):
    """The same generated program, with and without its weight being known."""
    found = {}
    for name, more in (("plain", []), ("calibrated", ["--calibrated"])):
        trace = tmp_path / f"{name}.tare"
        subprocess.run([BUILD / "tests" / "tare_gen", trace, "--spans", "100000", *more], check=True,
                       stdout=subprocess.DEVNULL)
        found[name] = report(trace, tmp_path)
    plain, calibrated = found["plain"], found["calibrated"]
    assert plain["own_weight_ns"] is None and calibrated["own_weight_ns"] > 1e6
    assert abs(sum(calibrated["ledger"].values()) - 2 * calibrated["ledger"]["wall_ns"]) < 100
    for line, ns in plain["ledger"].items():
        if line == "tare_ns":
            assert calibrated["ledger"][line] > ns
        elif ns is not None and line != "other_ns":
            assert calibrated["ledger"][line] <= ns + 20
    bare, loop = plain["loops"][0], calibrated["loops"][0]
    assert bare["passes"] == loop["passes"] and bare["total_ns"] == loop["total_ns"]
    for figure in ("median", "p10", "mean"):
        assert loop["pass_ns"][figure] < bare["pass_ns"][figure]
    # What the loop's ledger says and what its passes lost is the same, but for a pass's ends.
    taken = bare["pass_ns"]["mean"] - loop["pass_ns"]["mean"]
    assert taken == pytest.approx(loop["own_weight"]["weight_ns"], rel=0.02)
