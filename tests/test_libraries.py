"""
Programs that use real libraries, tests/prog/library_*.py: they run traced as they run bare, and every wait
of theirs is found on its line of the library and on its line of the program, as often as it happened. The
truth is the simulated device's, which has the lines from CPython itself.
"""

import collections
import json
import re
import subprocess
import sys
from pathlib import Path

import pytest
from conftest import PROG, ROOT, TARE

sys.path.insert(0, str(ROOT / "tests" / "sim"))
import lines  # noqa: E402

REQUIREMENTS = "tests/requirements-libraries.txt"

# What differs from run to run: seconds and rates.
TIMES = re.compile(r"'\w+_(runtime|samples_per_second|steps_per_second)': '[\d.e+-]+'|[\d.]+it/s|\d\d:\d\d")


@pytest.fixture(scope="session")
def library_python():
    """A Python that has the libraries, besides what the tests' own has."""
    pytest.importorskip("torch")
    command = [ROOT / "scripts" / "venv.sh", REQUIREMENTS, sys.executable]
    made = subprocess.run(command, capture_output=True, text=True)
    assert made.returncode == 0, made.stderr
    return made.stdout.strip()


def tare(command, *arguments):
    command = [TARE, command, "--format", "json", *arguments]
    done = subprocess.run(command, capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")
    return json.loads(done.stdout)


def place(frame):
    return frame and (Path(frame.file).name, frame.line)


def true_waits(calls):
    """{(function, innermost line, innermost line of the program): waits}"""
    counts = collections.Counter()
    for wait in lines.waits(calls):
        frames = wait.call.frames
        user = next((frame for frame in frames if frame.file.startswith(f"{PROG}/")), None)
        counts[wait.function, place(frames[0] if frames else None), place(user)] += 1
    return counts


def site(json_site):
    return json_site and (Path(json_site["file"]).name, json_site["line"])


def found_waits(result):
    counts = collections.Counter()
    for one in result["findings"] + result["warm_up"]:
        if one["kind"] != "memory":
            function = one["call"].split(", ")[-1]
            counts[function, site(one["site"]), site(one["user_site"])] += one["count"]
    return counts


@pytest.fixture
def findings(run_bare_and_traced, sim, library_python, tmp_path):
    """
    findings(name) → what `tare syncs` has of each process of tests/prog/library_<name>.py that used the
    device, after the checks that hold for all of them.
    """

    def findings(name):
        run = run_bare_and_traced(
            sim([library_python, PROG / f"library_{name}.py"]),
            env={"TARE_SIM_LINES": tmp_path / "lines", "HF_HUB_OFFLINE": 1, "OMP_NUM_THREADS": 1},
            mask=lambda text: TIMES.sub("", text),
            returncode=0,
        )
        truth = lines.read_all(tmp_path / "lines")
        results = []
        for trace in run.traces:
            pid = int(trace.name.split("-")[1])
            result = tare("syncs", trace)
            assert result["trace"]["lost"] == 0
            if pid in truth:
                assert found_waits(result) == true_waits(truth[pid])
                results.append(result)
            else:
                assert not result["findings"]
        assert results
        return results

    return findings


def line_of(name, text):
    """The number of the only line of the program that holds `text`."""
    source = (PROG / f"library_{name}.py").read_text().splitlines()
    (number,) = [number for number, line in enumerate(source, 1) if text in line]
    return number


def at(result, file, line=None):
    """Findings whose innermost line is there."""
    return [
        one
        for one in result["findings"]
        if one["site"]
        and one["site"]["file"].endswith(file)
        and (line is None or one["site"]["line"] == line)
    ]


def main_loop(result):
    loop = result["main_loop"]
    return loop and (loop["file"].split("site-packages/")[-1], loop["passes"])


def test_transformers(findings):
    (result,) = findings("transformers")
    assert main_loop(result) == ("transformers/trainer.py", 64)
    # All of the training is one line of the program's: the library's tell them apart.
    train = line_of("transformers", "trainer.train()")
    in_train = [one for one in result["findings"] if one["user_site"]["line"] == train]
    assert len({(one["site"]["file"], one["site"]["line"]) for one in in_train}) >= 6
    # A callback of the program's.
    (callback,) = at(result, "library_transformers.py", line_of("transformers", "torch.isnan(p)"))
    assert (callback["class"], callback["main_per_pass"]) == ("hot", 2)
    # A checkpoint is one row, with its period.
    (checkpoint,) = at(result, "torch/storage.py")
    assert (checkpoint["class"], checkpoint["period"]) == ("periodic", 32)
    assert "saved" in checkpoint["hint"]
    # The loop over tokens, in generate().
    tokens = at(result, "transformers/generation/utils.py")
    assert any(one["loop"]["passes"] == 7 * 5 - 5 and one["per_pass"] == 1 for one in tokens)


def test_torchvision(findings):
    (result,) = findings("torchvision")
    # Batches, not epochs.
    assert main_loop(result)[0].endswith("library_torchvision.py") and main_loop(result)[1] == 24
    # The model is saved once.
    (saved,) = at(result, "torch/storage.py")
    assert (saved["class"], saved["loop"]) == ("once", None)
    read = line_of("torchvision", "losses.update(loss.item()")
    (loss,) = at(result, "library_torchvision.py", read)
    assert (loss["kind"], loss["class"], loss["per_pass"]) == ("scalar-read", "hot", 1)
    (scaler,) = at(result, "torch/amp/grad_scaler.py")
    assert scaler["by_design"]


def test_lightning(findings):
    (result,) = findings("lightning")
    assert main_loop(result) == ("lightning/pytorch/loops/training_epoch_loop.py", 80)
    # A condition of several lines is where its `if` is.
    (condition,) = at(result, "library_lightning.py", line_of("lightning", "if ("))
    assert (condition["op"], condition["class"]) == ("aten::is_nonzero", "hot")
    (mask,) = at(result, "library_lightning.py", line_of("lightning", "error[error > 1.0]"))
    assert mask["kind"] == "size-read"


def test_accelerate(findings):
    (result,) = findings("accelerate")
    assert main_loop(result)[0].endswith("library_accelerate.py") and main_loop(result)[1] == 48
    # Forward, the same again on autograd's thread, and evaluation.
    part = at(result, "library_accelerate.py", line_of("accelerate", ".norm().item()"))
    assert sorted((one["count"], one["class"]) for one in part) == [(4, "hot"), (48, "hot"), (48, "hot")]
    assert len({one["thread"] for one in part}) == 2
    # A backward in Python, and who waits for it.
    (custom,) = at(result, "library_accelerate.py", line_of("accelerate", "grad.abs().max()"))
    assert custom["op"] == "aten::is_nonzero"
    assert custom["user_site"] == custom["site"]
    assert custom["backward_site"]["line"] == line_of("accelerate", "accelerator.backward(loss)")
    (saved,) = at(result, "torch/storage.py")
    assert (saved["class"], saved["period"]) == ("periodic", 16)
    (generator,) = at(result, "library_accelerate.py", line_of("accelerate", "right += sum("))
    assert generator["site"]["function"].endswith("<genexpr>")


def test_ddp(findings):
    results = findings("ddp")
    assert len(results) == 2
    for result in results:
        assert result["trace"]["program"] == "multiprocessing.spawn"
        assert main_loop(result)[0].endswith("library_ddp.py") and main_loop(result)[1] == 128
        (loss,) = at(result, "library_ddp.py", line_of("ddp", "running += loss.item()"))
        assert (loss["class"], loss["main_per_pass"]) == ("hot", 1)
        (mean,) = at(result, "library_ddp.py", line_of("ddp", "return value.item()"))
        assert (mean["class"], mean["period"]) == ("periodic", 8)
        # The reducer's own statistics: nobody asked for them.
        (events,) = [one for one in at(result, "torch/nn/parallel/distributed.py") if one["kind"] == "event-sync"]
        assert (events["explicit"], events["hint"]) == (False, None)
        (native,) = [one for one in result["findings"] if not one["site"]]
        assert "gloo" in native["thread"] and not native["explicit"]
