"""Load: many threads at full rate, many processes, limits, days of time. What is counted is exact, or said."""

import json
import subprocess

import pytest
from conftest import BUILD, TARE, check_ledgers, clean_environment

DAY = 86400


def tare(*args):
    """(stdout, stderr) of a command that ends well."""
    command = [TARE, *map(str, args)]
    done = subprocess.run(command, capture_output=True, text=True, env=clean_environment({}))
    assert done.returncode == 0, done.stderr
    return done.stdout, done.stderr


# -------------------------------------------------------------------------------- days


def generate(path, *args):
    command = [BUILD / "tests" / "tare_gen", path, *map(str, args)]
    return json.loads(subprocess.run(command, check=True, capture_output=True).stdout)


@pytest.mark.parametrize("days", [1, 100])
def test_slow_program(tmp_path, days):
    """A program that sleeps for hours between its passes: all is as where it does not, but the wall."""
    kinds = ["--spans", 40_000, "--gpu", "--stacks", "--calibrated"]
    quick = generate(tmp_path / "quick.tare", *kinds)
    passes = quick["threads"][0]["passes"]
    slow = generate(tmp_path / "slow.tare", *kinds, "--pause", days * DAY // passes)
    assert slow == quick
    for name in ("quick", "slow"):
        check_ledgers(tmp_path / f"{name}.tare")
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
