"""Whether a loop could be a CUDA graph: what is said of loops with known launches and obstacles."""

import json
import os
import re
import subprocess

import pytest
from conftest import PROG, TARE

pytest.importorskip("torch")

SOURCE = (PROG / "syncs_graph.py").read_text().splitlines()


@pytest.fixture(scope="module")
def trace(tmp_path_factory, trace_on_device):
    return trace_on_device(tmp_path_factory.mktemp("graph"), PROG / "syncs_graph.py")


def loop_of(function):
    start = SOURCE.index(f"def {function}():")
    return next(i for i, line in enumerate(SOURCE, 1) if i > start and line.startswith("    for "))


def line_of(text):
    return next(i for i, line in enumerate(SOURCE, 1) if text in line)


def ask(trace, function, command="syncs", text=False):
    words = [TARE, command, "--loop", f"syncs_graph.py:{loop_of(function)}"]
    env = {**os.environ, "COLUMNS": "80"}
    if text:
        out = subprocess.run([*words, trace], capture_output=True, text=True, check=True, env=env).stdout
        assert "can be captured" not in out
        return re.sub(r"\s+", " ", out)
    out = subprocess.run([*words, "--format", "json", trace], capture_output=True, check=True).stdout
    return json.loads(out)["cuda_graph"]


def test_nothing_in_the_way(trace):
    found = ask(trace, "plain")
    assert found["status"] == "nothing-seen" and found["obstacles"] == []
    assert found["launches_per_pass"] == found["launches_least"] == found["launches_most"] == 2
    assert found["passes"] == found["passes_alike"] == 20
    assert 0 < found["launch_ns"] < found["host_ns"]
    assert "what cuBLAS, cuDNN and NCCL launch" in found["unknown"]
    for command in ("syncs", "report"):
        text = ask(trace, "plain", command, text=True)
        assert "as a CUDA graph 2 launches a pass" in text
        assert "nothing was seen that stands in the way" in text and "at most" in text


def test_obstacles(trace):
    found = ask(trace, "obstacles")
    assert found["status"] == "obstacles"
    kinds = {one["kind"]: one for one in found["obstacles"]}
    assert set(kinds) == {"reads", "pageable-copies", "memory", "varying-launches"}
    assert kinds["reads"]["per_pass"] == 1
    assert kinds["reads"]["site"] == f"syncs_graph.py:{line_of('.item()')}"
    assert kinds["pageable-copies"]["site"] == f"syncs_graph.py:{line_of('non_blocking')}"
    assert found["launches_most"] - found["launches_least"] == 4
    assert found["passes_alike"] == 4
    text = ask(trace, "obstacles", text=True)
    assert "in the way: reads of device values (1.00 a pass, most at syncs_graph.py:" in text
    assert ask(trace, "obstacles", "report") == found


def test_a_pass_now_and_then_is_no_obstacle(trace):
    found = ask(trace, "periodic")
    assert found["status"] == "nothing-seen" and found["passes_alike"] == 19
    assert (found["launches_least"], found["launches_most"]) == (2, 3)


def test_replayed(trace):
    found = ask(trace, "replays")
    assert found["status"] == "uses-graphs"
    assert (found["graph_launches_per_pass"], found["launches_per_pass"]) == (1, 2)
    assert "1 graph a pass, and 1 launch outside of it" in ask(trace, "replays", text=True)


def test_no_launches(trace):
    assert ask(trace, "host") is None
    assert "as a CUDA graph" not in ask(trace, "host", text=True)
