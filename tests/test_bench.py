"""`tare bench`: its rows, their figures in each format, what is unknown, wrong usage. No figure is compared."""

import csv
import io
import json
import subprocess

import pytest
from conftest import PYTHONS, SIM, TARE, clean_environment

ROWS = "cpu.add,gpu.item,call.one,list.literal,try.raise"


def bench(*arguments, **more):
    return subprocess.run(
        [str(part) for part in (TARE, "bench", "--rounds", "1", *arguments)],
        env=clean_environment(None),
        capture_output=True,
        text=True,
        timeout=170,
        **more,
    )


def rows_of(done):
    assert done.returncode in (0, 1), done.stderr
    found = json.loads(done.stdout)
    return found, {row["name"]: row for row in found["rows"]}


def test_figures(python, tmp_path):
    found, rows = rows_of(
        bench("--python", python, "--rows", ROWS, "--format", "json", "--check", "--keep", tmp_path / "k")
    )
    assert list(rows) == ROWS.split(",")
    assert (tmp_path / "k" / "trace").is_dir()
    assert found["machine"]["python"] and found["machine"]["torch"]
    for name, row in rows.items():
        if row["unknown"]:
            assert (name, row["unknown"]) == ("gpu.item", "no GPU")
            continue
        timer = row["timer_ns"]
        assert (row["blocked_ns"] is not None) == (row["group"] == "pytorch")
        assert 0 < timer["p25"] <= timer["median"] <= timer["p75"]
        assert timer["mean"] > 0 and row["published_ns"] > 0
        if name == "list.literal":
            assert row["tare_ns"] is None and row["within"] is None
            continue
        assert row["tare_ns"]["median"] > 0 and row["traced_timer_ns"] > 0
        off = row["tare_ns"]["median"] - timer["median"]
        assert row["difference_ns"] == pytest.approx(off, abs=0.2)
        assert row["within"] == (abs(row["difference_ns"]) <= row["tolerance_ns"])
    assert rows["cpu.add"]["framework_ns"] > 0 and rows["cpu.add"]["launch_ns"] is None
    assert found["passed"] == all(row["within"] in (True, None) for row in rows.values())
    if SIM.exists() and not rows["gpu.item"]["unknown"]:
        assert rows["gpu.item"]["host_cost_only"] == found["machine"]["simulated"]
        assert rows["gpu.item"]["copy_ns"] > 0


def test_without_torch():
    """Rows of PyTorch are unknown, not 0; the reason is said."""
    other = [path for name, path in PYTHONS.items() if name.startswith("3.12")]
    if not other:
        pytest.skip("no further Python")
    _, rows = rows_of(bench("--python", other[0], "--rows", "cpu.,call.none", "--format", "json"))
    assert rows["cpu.add"]["unknown"] == "no PyTorch"
    assert rows["cpu.add"]["timer_ns"] is None
    assert rows["call.none"]["tare_ns"]["median"] > 0


def test_text_and_csv(python):
    done = bench("--python", python, "--rows", "call.none,list.literal")
    assert done.returncode == 0, done.stderr
    lines = {line.split()[0]: line for line in done.stdout.splitlines() if line and line[0] != " "}
    assert "the timer's alone" in lines["list.literal"]
    assert "the timer's alone" not in lines["call.none"]
    done = bench("--python", python, "--rows", "call.none", "--format", "csv")
    (row,) = csv.DictReader(io.StringIO(done.stdout))
    assert row["name"] == "call.none" and float(row["tare_ns.median"]) > 0


@pytest.mark.parametrize(
    "arguments, words",
    [
        (["--rows", "nothing"], "nothing"),
        (["--rounds", "0"], "--rounds"),
        (["--format", "xml"], "xml"),
        (["--python", "/nowhere/python"], "/nowhere/python"),
        (["--python", "false"], "false"),
        (["--keep", "/nowhere/folder"], "/nowhere/folder"),
    ],
)
def test_wrong_usage(arguments, words):
    done = bench(*arguments)
    assert (done.returncode, done.stdout) == (2, "")
    assert words in done.stderr and len(done.stderr.splitlines()) == 1
