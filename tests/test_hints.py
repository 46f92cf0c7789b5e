"""Each hint of hints.def is given for its cause, and for no other."""

import json
import re
import subprocess

import pytest
from conftest import PROG, TARE

pytest.importorskip("torch")

SOURCE = (PROG / "syncs_hints.py").read_text().splitlines()
CAUSES = {i: line.split("# HINT ")[1] for i, line in enumerate(SOURCE, 1) if "# HINT " in line}
NAMES = [found[1] for line in SOURCE if (found := re.match(r"def (\w+)\(\):", line))]


@pytest.fixture(scope="module")
def hints(tmp_path_factory, trace_on_device):
    """{line: the hints of its findings}"""
    folder = trace_on_device(tmp_path_factory.mktemp("hints"), PROG / "syncs_hints.py", *NAMES)
    done = subprocess.run([TARE, "syncs", "--format", "json", folder], capture_output=True, check=True)
    found = {}
    for one in json.loads(done.stdout)["findings"]:
        if one["class"] != "once":
            found.setdefault(one["user_site"]["line"], set()).add(one["hint"])
    return found


@pytest.mark.parametrize("line", CAUSES, ids=[f"{i}" for i in CAUSES])
def test_hint(hints, line):
    given = hints.get(line, set())
    where = f"{SOURCE[line - 1].strip()}: {given}"
    assert any(CAUSES[line] in hint for hint in given), where
    others = {words for words in CAUSES.values() if words != CAUSES[line]}
    assert not [hint for hint in given for words in others if words in hint], where
