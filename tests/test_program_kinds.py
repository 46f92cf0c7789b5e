"""
Programs that are no plain script: a cell of a notebook, exec, -c, -m, a zip file, standard input, names that
are not ASCII. Their lines are the user's, and right, in findings and operators, in text and JSON.
"""

import json
import os
import subprocess
import sys
import zipfile

import pytest
from conftest import ROOT, TARE

pytest.importorskip("torch")

BODY = """\
import torch

def measure(x):
    y = x * 2
    return y.sum().item()

x = torch.ones(8, device="cuda")
for step in range(6):
    measure(x)
    (x + 1).cpu()
"""
FUNCTION, LOOP = "measure", 8
MULTIPLY, READ, CALL, COPY = 4, 5, 9, 10


def tare(command, trace, *options, encoding="utf-8"):
    env = {**os.environ, "COLUMNS": "200"}
    done = subprocess.run([TARE, command, *options, trace], capture_output=True, env=env)
    assert (done.returncode, done.stderr) == (0, b"")
    return done.stdout.decode(encoding)


@pytest.fixture
def check(run_bare_and_traced, sim, python):
    """
    check(command, file, …): runs `python command` and looks for what BODY does in code whose file ends so.
    `first`: the number of BODY's first line.
    """

    def check(command, file, first=1, function=FUNCTION, shown=None, interpreter=python, **more):
        run = run_bare_and_traced(sim([interpreter, *command]), **more)
        assert run.returncode == 0, run.stderr
        result = json.loads(tare("syncs", run.trace, "--format", "json"))
        ops = json.loads(tare("ops", run.trace, "--format", "json", "--by", "op,site"))["ops"]
        off = first - 1

        def expect(line, kind, name):
            found = [one for one in result["findings"] if one["kind"] == kind]
            assert len(found) == 1, found
            (one,) = found
            assert one["site"]["file"].endswith(file), one["site"]
            assert one["site"] == one["user_site"]
            assert (one["site"]["line"], one["site"]["function"]) == (line + off, name)
            assert (one["count"], one["per_pass"], one["class"]) == (6, 1, "hot")
            assert one["loop"]["file"] == one["site"]["file"]
            assert (one["loop"]["line"], one["loop"]["passes"]) == (LOOP + off, 6)

        expect(READ, "scalar-read", function)
        (copy,) = [one for one in result["findings"] if one["kind"] == "device-to-host"]
        expect(COPY, "device-to-host", copy["site"]["function"])
        rows = [row for row in ops if row["op"] == "aten::mul.Tensor" and row["site"]["function"] == function]
        (row,) = rows
        assert row["site"] == row["user_site"] and row["site"]["file"].endswith(file)
        assert (row["site"]["line"], row["calls"]) == (MULTIPLY + off, 6)

        name = shown or file.rsplit("/", 1)[-1]
        assert f"{name}:{READ + off}" in tare("syncs", run.trace)
        assert f"{name}:{READ + off}" in tare("report", run.trace)
        assert f"{name}:{MULTIPLY + off}" in tare("ops", run.trace, "--by", "op,site", "--top", "0")
        for format in ("json", "csv"):
            tare("report", run.trace, "--format", format)
        return result

    return check


def test_command_line(check):
    check(["-c", BODY], "<string>")


def test_standard_input(check):
    check(["-"], "<stdin>", stdin=BODY)


@pytest.mark.parametrize("name", ["/tmp/ipykernel_123/456.py", "<ipython-input-1-abc>", "<string>", "made.py"])
def test_executed(check, tmp_path, name):
    path = tmp_path / "runner.py"
    path.write_text(f"import sys\ncode = compile({BODY!r}, {name!r}, 'exec')\nexec(code, {{}})\n")
    check([path], name)


def test_module(check, tmp_path):
    package = tmp_path / "here" / "package" / "inner"
    package.mkdir(parents=True)
    (package / "__init__.py").write_text("")
    (package / "module.py").write_text(f"# A comment.\n\n{BODY}")
    check(["-m", "package.inner.module"], "/package/inner/module.py", first=3, cwd=tmp_path / "here")


def test_zip(check, tmp_path):
    with zipfile.ZipFile(tmp_path / "app.zip", "w") as app:
        app.writestr("__main__.py", BODY)
    check([tmp_path / "app.zip"], "app.zip/__main__.py")


def test_not_ascii(check, tmp_path):
    folder = tmp_path / "Größe – 学習"
    folder.mkdir()
    path = folder / "Übung_训练.py"
    path.write_text(BODY.replace("measure", "länge_测量"))
    check([path], "/Größe – 学習/Übung_训练.py", function="länge_测量")


@pytest.fixture(scope="session")
def library_python():
    command = [ROOT / "scripts" / "venv.sh", "tests/requirements-libraries.txt", sys.executable]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()


def test_ipython(check, library_python, tmp_path):
    env = {"IPYTHONDIR": tmp_path / "ipython", "HOME": tmp_path}
    options = ["-m", "IPython", "--no-banner", "--colors=nocolor", "--HistoryManager.enabled=False"]
    result = check([*options, "-c", BODY], ">", interpreter=library_python, shown=">", env=env)
    assert result["findings"][0]["site"]["file"].startswith("<ipython-input-")
