"""Big traces: everything that was written is read, in memory that does not grow with them."""

import json
import subprocess

import pytest
from conftest import BUILD


def generate(path, *args):
    command = [BUILD / "tests" / "tare_gen", path, *map(str, args)]
    return json.loads(subprocess.run(command, check=True, capture_output=True).stdout)


def scan(path):
    command = [BUILD / "tests" / "trace_scan", path]
    return json.loads(subprocess.run(command, check=True, capture_output=True).stdout)


@pytest.mark.slow
@pytest.mark.parametrize("threads", [1, 4])
def test_memory_is_flat(tmp_path, threads):
    peaks = []
    for spans in (5_000_000, 50_000_000):
        path = tmp_path / "big.tare"
        counts = generate(path, "--spans", spans, "--threads", threads)
        written = sum(counts["events"].values())
        found = scan(path)
        # tare's own spans, two events a block, come on top.
        assert written < found["events"] < written * 1.01
        peaks.append(found["peak_kb"])
        path.unlink()
    # An index entry a block, of 14 000 events or so.
    assert peaks[1] < peaks[0] + 2048


def test_counts_of_many_threads(tmp_path):
    """More threads than there are in a heap's first levels, each with a few blocks."""
    counts = generate(tmp_path / "a.tare", "--spans", 400_000, "--threads", 40)
    found = scan(tmp_path / "a.tare")
    assert sum(counts["events"].values()) < found["events"]
    done = subprocess.run(
        [BUILD / "tare", "info", "--format", "json", tmp_path / "a.tare"],
        check=True,
        capture_output=True,
    )
    trace = json.loads(done.stdout)["traces"][0]
    own = trace["events_by_kind"].pop("TARE")
    trace["events_by_kind"]["LEAVE"] -= own
    assert trace["events_by_kind"] == counts["events"]
    assert [thread["spans"] for thread in trace["threads"]] == [
        thread["spans"] for thread in counts["threads"]
    ]
