"""Loops of code objects from their bytecode, by each interpreter's own compiler."""

import ctypes
import json
import subprocess

import pytest
from conftest import ROOT

SOURCES = ("bytecode", "lines", "memory", "display", "message")


class Str(ctypes.Structure):
    _fields_ = [("data", ctypes.c_char_p), ("length", ctypes.c_uint32)]


class Loop(ctypes.Structure):
    _fields_ = [(name, ctypes.c_uint32) for name in ("first", "last", "head", "asks_until", "line")] + [
        ("outer", ctypes.c_uint16),
        ("depth", ctypes.c_uint16),
    ]


class Loops(ctypes.Structure):
    _fields_ = [
        ("loops", ctypes.POINTER(Loop)),
        ("count", ctypes.c_uint32),
        ("at", ctypes.POINTER(ctypes.c_uint16)),
        ("units", ctypes.c_uint32),
    ]


@pytest.fixture(scope="session")
def analyzer(tmp_path_factory):
    library = tmp_path_factory.mktemp("bytecode") / "bytecode.so"
    sources = [ROOT / "analyzer" / f"{name}.c" for name in SOURCES]
    flags = ["-std=gnu17", "-D_GNU_SOURCE", "-shared", "-fPIC", "-I", ROOT]
    subprocess.run(["gcc", *flags, *sources, "-o", library], check=True)
    return ctypes.CDLL(str(library))


class Code:
    def __init__(self, analyzer, python, record):
        self.analyzer = analyzer
        self.python = python
        self.name = record["name"]
        self.lines, self.bytecode = (
            Str(data, len(data))
            for data in (bytes.fromhex(record["lines"]), bytes.fromhex(record["bytecode"]))
        )
        self.found = Loops()
        self.first_line = ctypes.c_uint32(record["first_line"])
        analyzer.bytecode_loops(
            ctypes.byref(self.found), ctypes.c_uint32(python), self.first_line, self.lines, self.bytecode
        )
        self.loops = [self.found.loops[i] for i in range(1, self.found.count)]

    def line(self, unit):
        return self.analyzer.lines_lookup(
            ctypes.c_uint32(self.python), self.first_line, self.lines, ctypes.c_uint32(unit)
        )

    def always(self, loop, unit):
        self.analyzer.bytecode_always.restype = ctypes.c_bool
        return self.analyzer.bytecode_always(
            ctypes.byref(self.found),
            ctypes.c_uint32(loop),
            ctypes.c_uint32(self.python),
            self.bytecode,
            ctypes.c_uint32(unit),
        )


@pytest.fixture
def sources(any_python, analyzer, program):
    """[(path, codes, {line: kind of loop statement})]; .version."""
    probe = "import sys; print(*sys.version_info[:2])"
    done = subprocess.run([any_python, "-c", probe], capture_output=True, text=True, check=True)
    major, minor = map(int, done.stdout.split())
    done = subprocess.run([any_python, program("loops_codes.py")], capture_output=True, text=True, check=True)
    found = []
    for record in map(json.loads, done.stdout.splitlines()):
        codes = [Code(analyzer, major << 8 | minor, code) for code in record["codes"]]
        found.append((record["path"], codes, {int(k): v for k, v in record["loops"].items()}))
    return found, (major, minor)


def test_known_functions(sources):
    """Each loop of tests/prog/loops_codes.py, with its line and how deep it lies."""
    (path, codes, _), *_ = sources[0]
    version = sources[1]
    text = open(path).read().splitlines()
    expected = {
        "plain": [("for x in xs:", 0)],
        "nested": [("for x in xs:", 0), ("while x:", 1), ("for y in range(x):", 2)],
        "conditions": [("while a() or b() and not c():", 0)],
        "handlers": [("for x in xs:", 0)],
        "in_handler": [("for x in xs:", 0)],
        "delegates": [("for x in g:", 0)],
        "waits": [("for x in xs:", 0), ("async for x in xs:", 0)],
        "unrolled": [],
        "wide": [("for x in xs:", 0), ("for y in a:", 1)],
    }
    seen = {code.name: code for code in codes}
    for name, loops in expected.items():
        code = seen[name]
        assert [(text[loop.line - 1].strip(), loop.depth) for loop in code.loops] == loops, name
    (loop,) = seen["forever"].loops
    # Before 3.10 nothing in the bytecode tells of `while True`.
    assert text[loop.line - 1].strip() == ("while True:" if version >= (3, 10) else "if f():")
    own = "comprehension" if version >= (3, 12) else "<listcomp>"
    assert len(seen[own].loops) == 1


def test_what_each_pass_runs(sources):
    (path, codes, _), *_ = sources[0]
    text = open(path).read().splitlines()
    code = next(code for code in codes if code.name == "handlers")
    always = {text[code.line(unit) - 1].strip() for unit in range(code.found.units)
              if code.found.at[unit] == 1 and code.always(1, unit)}
    assert "for x in xs:" in always
    assert {"print(\"value\")", "continue", "print(\"after\")"}.isdisjoint(always)
    code = next(code for code in codes if code.name == "nested")
    always = {text[code.line(unit) - 1].strip() for unit in range(code.found.units)
              if code.found.at[unit] == 1 and code.always(1, unit)}
    assert "print(x)" in always and "print(y)" not in always


def test_handlers_belong_to_their_loop(sources):
    (path, codes, _), *_ = sources[0]
    text = open(path).read().splitlines()
    code = next(code for code in codes if code.name == "handlers")
    inside = {text[code.line(unit) - 1].strip() for unit in range(code.found.units) if code.found.at[unit]}
    assert {'print("value")', 'print("end")', "f(x)"} <= inside
    assert {'print("after")', 'print("no loop")', "f(0)"}.isdisjoint(inside)


def test_whole_modules(sources):
    """Each loop begins on a line of a loop statement; each `for` with a body that goes on is found."""
    checked = 0
    for path, codes, statements in sources[0]:
        for code in codes:
            for loop in code.loops:
                kind = statements.get(loop.line)
                if kind is None and sources[1] < (3, 10):
                    continue  # `while True`
                assert kind, f"{path}:{loop.line} {code.name} {loop.first}-{loop.last}"
                checked += 1
            # None is around itself; a `finally` may be there twice, with its loops.
            for loop in code.loops:
                around = code.found.loops[loop.outer].line if loop.outer else 0
                assert loop.line != around or statements[loop.line] == "comprehension", path
        found = {loop.line for code in codes for loop in code.loops}
        loops = {line for line, kind in statements.items() if kind == "for"}
        # A body that always leaves is no loop; there are few.
        assert len(loops - found) <= 0.12 * len(loops) + 1, sorted(loops - found)
    assert checked > 100


def test_any_bytes(analyzer):
    """Nothing in the bytes is trusted."""
    import random

    source = random.Random(7)
    for python in range(0x0308, 0x0310):
        for length in (0, 1, 2, 64, 1000):
            for _ in range(40):
                data = bytes(source.choice((0, 72, 77, 93, 100, 113, 114, 140, 144, 255)) for _ in range(length))
                record = {"name": "x", "first_line": 1, "lines": data.hex(), "bytecode": data.hex()}
                code = Code(analyzer, python, record)
                for loop in code.loops:
                    assert loop.first <= loop.last < length // 2
                analyzer.bytecode_loops_free(ctypes.byref(code.found))
