"""Code objects that come and go, and names that are hard to write down."""

import gc
import sys

addresses = set()
reused = 0


def make(i):
    space = {}
    source = "\n" * (i % 50) + "def made_%d(): return other()\ndef other(): return %d" % (i, i)
    exec(compile(source, "made_%d.py" % i, "exec"), space)
    return space["made_%d" % i]


for i in range(300):
    function = make(i)
    address = id(function.__code__)
    reused += address in addresses
    addresses.add(address)
    for _ in range(i % 3 + 1):
        assert function() == i
    del function
    if i % 100 == 0:
        gc.collect()
assert reused > 10

for name, file in [
    ("ascii", "plain.py"),
    ("größe", "äöü/日本語.py"),
    ("\U0001f40d".encode("utf-16", "surrogatepass").decode("utf-16"), "snake.py"),
    ("lone_\udc80_surrogate", "file_\udcff.py"),
    ("x" * 100000, "long_" + "y" * 100000),
    ("", ""),
    ("zero\0byte", "<string>"),
]:
    code = compile("other()", "x", "exec").replace(co_name=name, co_filename=file)
    if sys.version_info >= (3, 11):
        code = code.replace(co_qualname=name)
    eval(code, {"other": lambda: 1})

# A function with a table of some hundred kB.
exec("def big():\n" + "    a = [1, 2, 3]; a.append(4); a = len(a)\n" * 8000 + "    return a")
print(big(), big())  # noqa: F821
