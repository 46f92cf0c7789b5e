"""
Prints, as JSON, the bytecode of the functions below and of all of some standard modules, with the loops
that their source has. Compared with analyzer/bytecode.c by test_loops.py.
"""

import ast
import asyncio.base_events
import json
import subprocess
import sys
import tarfile
import types


def plain(xs):
    for x in xs:
        print(x)


def nested(xs):
    for x in xs:
        while x:
            x -= 1
            for y in range(x):
                print(y)
        print(x)


def conditions(a, b, c):
    while a() or b() and not c():
        if b():
            continue
        if c():
            break
        print(1)


def forever(f):
    while True:
        if f():
            return 1


def handlers(xs, f):
    for x in xs:
        try:
            f(x)
        except ValueError:
            print("value")
        except KeyError:
            continue
        finally:
            print("finally")
        with open(x) as file:
            print(file)
        print("end")
    try:
        f(0)
    except OSError:
        print("no loop")
    print("after")


def in_handler(xs, f):
    try:
        f()
    except ValueError:
        for x in xs:
            print(x)


def delegates(g):
    yield from g
    for x in g:
        yield from x


async def waits(xs, lock):
    await lock
    async with lock:
        print(1)
    for x in xs:
        await x
    async for x in xs:
        await x


def unrolled(xs):
    for x in xs:
        return x


def wide(xs):
    for x in xs:
        a = [x, x, x, x, x, x, x, x, x, x, x, x, x, x, x, x, x, x, x, x, x, x, x, x, x, x, x, x, x, x]
        b = [x, x, x, x, x, x, x, x, x, x, x, x, x, x, x, x, x, x, x, x, x, x, x, x, x, x, x, x, x, x]
        c = [x, x, x, x, x, x, x, x, x, x, x, x, x, x, x, x, x, x, x, x, x, x, x, x, x, x, x, x, x, x]
        d = [x, x, x, x, x, x, x, x, x, x, x, x, x, x, x, x, x, x, x, x, x, x, x, x, x, x, x, x, x, x]
        print(a, b, c, d, a, b, c, d, a, b, c, d, a, b, c, d, a, b, c, d, a, b, c, d, a, b, c, d, a, b)
        for y in a:
            print(y, a, b, c, d, a, b, c, d, a, b, c, d, a, b, c, d, a, b, c, d, a, b, c, d, a, b, c, d)


def comprehension(xs):
    return [
        x
        for x in xs
    ]


def codes_of(code):
    yield code
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            yield from codes_of(constant)


def statements(path):
    """{line of a loop: its last line} of the source: the statements that may be loops."""
    with open(path, "rb") as file:
        tree = ast.parse(file.read())
    comprehensions = (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)
    found = {}
    for node in ast.walk(tree):
        if isinstance(node, (ast.For, ast.AsyncFor, ast.While)):
            found[node.lineno] = "while" if isinstance(node, ast.While) else "for"
        elif isinstance(node, comprehensions):
            for line in range(node.lineno, node.end_lineno + 1):
                found.setdefault(line, "comprehension")
    return found


def main():
    modules = (ast, asyncio.base_events, json.decoder, subprocess, tarfile, types)
    for path in [__file__] + [module.__file__ for module in modules]:
        with open(path, "rb") as file:
            code = compile(file.read(), path, "exec")
        codes = [
            {
                "name": found.co_name,
                "first_line": found.co_firstlineno,
                "lines": (found.co_linetable if hasattr(found, "co_linetable") else found.co_lnotab).hex(),
                "bytecode": found.co_code.hex(),
            }
            for found in codes_of(code)
        ]
        print(json.dumps({"path": path, "codes": codes, "loops": statements(path)}))


if __name__ == "__main__":
    assert sys.version_info >= (3, 9)
    main()
