"""
Makes docs/cpython-suite.md and docs/package-suites.md from what the last runs of test_cpython_suite.py and
test_package_suites.py left in the build folder, and from suite_differences.toml: `make suite-doc`.
"""

import collections
import json
import textwrap

from conftest import ROOT
from suites import RESULTS, differences

WIDTH = 120
GENERATED = "<!-- Made by `make suite-doc`; do not edit. -->\n\n"
LEGEND = """
A cell has the number of tests, all of which ended the same traced as bare (passed, failed, skipped), and the seconds that
both runs took, bare + traced, on two cores with other work beside. *n differ*: explained below. *n fail*: bare too, for want
of something on that machine (a network, a terminal, a locale); the same ones traced. *n unsteady*: ended in another way in
one of up to three pairs of runs and not in the next; listed below. *skips itself*: the module says that it cannot run
here. –: that interpreter has no such module. *not run*: not when this
was made, for want of time."""


def load(suite):
    """{module: {version: [results of its parts]}}"""
    found = collections.defaultdict(lambda: collections.defaultdict(list))
    for path in sorted(RESULTS.glob(f"{suite}-*.json")):
        result = json.loads(path.read_text())
        found[result["module"].split(".")[0]][result["version"]].append(result)
    return found


def parts(suite):
    """How many parts of each module the tests run: {(version, module): number}"""
    if suite == "CPython":
        from test_cpython_suite import modules

        planned = [param.values[::2] for param in modules()]
    else:
        from test_package_suites import suites

        planned = suites()
    return collections.Counter((version, module.split(".")[0]) for version, module in planned)


def total(results):
    sums = collections.Counter()
    for one in results:
        sums["tests"] += one["tests"]
        sums["bare"] += one["seconds"][0]
        sums["traced"] += one["seconds"][1]
        sums["fail"] += one["bare"].get("failure", 0) + one["bare"].get("error", 0)
        for kind in ("differs", "unlisted", "unsteady"):
            sums[kind] += len(one[kind])
    return sums


def by_version(version):
    return [int(part) for part in version.split()[0].split("-")[0].split(".")], version


def cell(results, wanted):
    if len(results) < wanted:
        return f"{len(results)} of {wanted} parts run" if results else "not run"
    if not results:
        return "–"
    sums = total(results)
    if not sums["tests"]:
        return "skips itself"
    words = {"differs": "differ", "unlisted": "**differ, unexplained**", "fail": "fail", "unsteady": "unsteady"}
    notes = "".join(f", {sums[kind]} {word}" for kind, word in words.items() if sums[kind])
    return f"{sums['tests']}{notes}; {sums['bare']:.0f} + {sums['traced']:.0f} s"


def table(header, rows):
    lines = [header, ["---"] * len(header), *rows]
    return "".join(f"| {' | '.join(line)} |\n" for line in lines)


def summary(found, versions):
    rows = []
    for version in versions:
        results = [one for module in found.values() for one in module.get(version, ())]
        modules = sum(version in module for module in found.values())
        sums = total(results)
        same = sums["tests"] - sums["differs"] - sums["unlisted"]
        counts = [modules, sums["tests"], same, sums["differs"], sums["unlisted"], sums["unsteady"]]
        minutes = f"{sums['bare'] / 60:.1f} + {sums['traced'] / 60:.1f} min"
        rows.append([version, *map(str, counts), minutes])
    header = ["version", "modules", "tests", "same", "differ, explained", "unexplained", "unsteady", "bare + traced"]
    return table(header, rows)


def reasons(suite):
    """The part that suite_differences.toml alone decides."""
    text = ""
    for row in differences():
        if row.suite != suite:
            continue
        names = ", ".join(f"`{test.removeprefix(f'test.{row.module}.')}`" for test in row.tests)
        plain = " Any evaluator does this." if row.any_evaluator else ""
        about = f"**{row.module}**, {', '.join(row.versions)}: {names}. {row.why.strip()}{plain}"
        text += textwrap.fill(about, WIDTH, break_long_words=False, break_on_hyphens=False) + "\n\n"
    return "## What differs, because\n\n" + (text or "Nothing.\n\n")


def unsteady(found):
    lines = [
        f"- {one['version']} `{name}`: bare {outcomes[0]}, traced {outcomes[1]}\n"
        for module in found.values()
        for results in module.values()
        for one in results
        for name, outcomes in one["unsteady"].items()
    ]
    return "## Unsteady\n\n" + ("".join(sorted(lines)) or "None.\n")


def render(suite, head):
    found = load(suite)
    wanted = parts(suite)
    versions = sorted({version for version, _ in wanted}, key=by_version)
    names = sorted(found.keys() | {name for _, name in wanted})
    rows = [[name, *(cell(found[name].get(v, ()), wanted[v, name]) for v in versions)] for name in names]
    return (
        GENERATED
        + head
        + summary(found, versions)
        + LEGEND
        + "\n\n"
        + reasons(suite)
        + unsteady(found)
        + "\n## Module by module\n\n"
        + table(["module", *versions], rows)
    )


CPYTHON_HEAD = """\
# CPython's own tests under the preload

`tests/test_cpython_suite.py` (in `make check-slow`) runs modules of CPython's regression tests twice, bare and with libtare.so
preloaded, and compares test by test. A test that ends in another way and is not listed in `tests/suite_differences.toml` fails;
so does one that is listed and ends the same. All traces that the tests leave must be readable. Interpreters without tests,
such as Debian's without the package libpython3.11-testsuite, are left out.

"""

PACKAGES_HEAD = """\
# Tests of packages under the preload

`tests/test_package_suites.py` (in `make check-slow`) runs the tests that packages from PyPI bring, twice, bare and with
libtare.so preloaded, and compares test by test.

"""

DOCUMENTS = {
    "CPython": (ROOT / "docs" / "cpython-suite.md", CPYTHON_HEAD),
    "packages": (ROOT / "docs" / "package-suites.md", PACKAGES_HEAD),
}

if __name__ == "__main__":
    for suite, (path, head) in DOCUMENTS.items():
        path.write_text(render(suite, head))
