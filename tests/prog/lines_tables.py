"""Writes the line tables of many code objects, and what the interpreter itself says of each unit."""

import array
import dis
import importlib
import struct
import sys
import types

MODULES = """
    argparse ast asyncio.base_events collections contextlib copy dataclasses decimal difflib dis enum
    functools heapq inspect json.decoder logging ntpath optparse os pdb pickle random re shutil socket
    statistics string subprocess tarfile tempfile textwrap threading tokenize traceback typing
    unittest.case unittest.mock urllib.parse urllib.request uuid weakref xml.dom.minidom zipfile
""".split()


def functions(code):
    yield code
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            yield from functions(constant)


def lines_of_units(code):
    """The line of each code unit; -1: none."""
    units = [-1] * (len(code.co_code) // 2)
    if hasattr(code, "co_lines"):
        ranges = [(start, end, line) for start, end, line in code.co_lines()]
    else:
        starts = list(dis.findlinestarts(code))
        ends = [start for start, _ in starts[1:]] + [len(code.co_code)]
        ranges = [(start, end, line) for (start, line), end in zip(starts, ends)]
    for start, end, line in ranges:
        for unit in range(start // 2, end // 2):
            units[unit] = -1 if line is None else line
    return units


def write(code):
    table = code.co_linetable if sys.version_info >= (3, 10) else code.co_lnotab
    units = lines_of_units(code)
    version = sys.version_info[0] << 8 | sys.version_info[1]
    sys.stdout.buffer.write(struct.pack("<IIII", version, code.co_firstlineno, len(table), len(units)))
    sys.stdout.buffer.write(table + array.array("i", units).tobytes())


for name in MODULES:
    with open(importlib.import_module(name).__file__, encoding="utf-8") as file:
        for function in functions(compile(file.read(), name, "exec")):
            write(function)
# Steps that need more than one entry or byte, backwards and forwards, and nothing at all.
far = "def f(a):\n    a(" + "\n" * 700 + "1)\n    return (" + "\n" * 300 + "a() + " + "a() + " * 200 + "a())\n"
for function in functions(compile(far + "\n" * 70000 + "f(len)\n", "far", "exec")):
    write(function)
write((lambda: None).__code__)
