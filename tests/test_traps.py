"""What only looks like a synchronisation is none; what is one on purpose is told apart."""

import json
import os
import re
import subprocess

import pytest
from conftest import BUILD, LIBTARE, PROG, ROOT, SIM, TARE

pytest.importorskip("torch")

SOURCE = (PROG / "syncs_traps.py").read_text().splitlines()


def bodies():
    """{function: [line numbers]}"""
    found = {}
    name = None
    for number, line in enumerate(SOURCE, 1):
        start = re.match(r"(?:def|class) (\w+)", line)
        if start:
            name = start[1]
        elif line and not line.startswith(" "):
            name = None
        if name:
            found.setdefault(name, []).append(number)
    return found


BODIES = bodies()
TRAPS = [name for name in BODIES if name not in ("Reads", "drive", "run")]


@pytest.fixture(scope="module")
def findings(tmp_path_factory, python):
    """All traps in one run: starting torch is what takes time."""
    if not SIM.exists():
        pytest.skip("the simulated CUDA device is not built (make sim)")
    folder = tmp_path_factory.mktemp("traps")
    env = {k: v for k, v in os.environ.items() if not k.startswith("TARE_")}
    env.update(LD_PRELOAD=str(LIBTARE), TARE_OUTPUT=f"{folder}/")
    command = [ROOT / "tests" / "sim" / "run", "--build", BUILD, "--", python]
    subprocess.run([*command, PROG / "syncs_traps.py", *TRAPS], env=env, check=True)
    done = subprocess.run([TARE, "syncs", "--format", "json", folder], capture_output=True, check=True)
    return json.loads(done.stdout)["findings"]


def is_at(site, number):
    return site and site["file"].endswith("syncs_traps.py") and site["line"] == number


def check_reads(found, kind, count, where):
    same = [one for one in found if one["kind"] == kind and not one["explicit"]]
    assert sum(one["count"] for one in same) == 10 * count, f"{where}: {found}"
    return same


@pytest.mark.parametrize("trap", TRAPS)
def test_trap(trap, findings):
    for number in BODIES[trap] + (BODIES["Reads"] if trap == "backward_reads" else []):
        line = SOURCE[number - 1]
        where = f"{trap}, line {number}: {line.strip()}"
        found = [one for one in findings if is_at(one["user_site"], number) or is_at(one["site"], number)]
        frequent = [one for one in found if one["class"] != "once"]
        if "# CLEAN" in line:
            assert not frequent, f"{where}: {found}"
        explicit = re.search(r"# EXPLICIT ([\w-]+)", line)
        if explicit:
            assert [one["kind"] for one in frequent] == [explicit[1]], where
            assert frequent[0]["explicit"] and frequent[0]["count"] == 10, where
        if "# DESIGN" in line:
            assert frequent and all(one["by_design"] for one in frequent), f"{where}: {found}"
        kind = re.search(r"# ([a-z-]+) (\d+)$", line)
        if kind and trap == "other_thread":
            (same,) = check_reads(found, kind[1], int(kind[2]), where)
            assert same["loop"] is None and not same["thread"].startswith("1 ")
        elif kind:
            same = check_reads(frequent, kind[1], int(kind[2]), where)
            assert all(one["class"] == "hot" for one in same), f"{where}: {same}"
        if kind and trap == "backward_reads":
            lines = {one["backward_site"]["line"] for one in same}
            assert {SOURCE[at - 1].strip()[-11:] for at in lines} == {".backward()"}
