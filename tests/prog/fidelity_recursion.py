"""
Recursion without end of many kinds, under the default limit: LIMIT [thread]. Prints how each ended, and
with TARE_TEST_DEPTHS names a file for how deep each went.
"""

import copy
import functools
import json
import os
import pickle
import re
import sys
import threading


def deeper():
    global depth
    depth += 1


class Node:
    def __len__(self):
        deeper()
        return len(self)

    def __eq__(self, other):
        deeper()
        return self == other

    def __getattr__(self, name):
        deeper()
        return getattr(self, name + "")

    def __repr__(self):
        deeper()
        return repr(self)

    def __call__(self):
        deeper()
        return self()

    @property
    def prop(self):
        deeper()
        return self.prop


class Made:
    def __init__(self):
        deeper()
        Made()


class Reduced:
    def __reduce__(self):
        deeper()
        return (Reduced, (), [Reduced()])


class Copied:
    def __deepcopy__(self, memo):
        deeper()
        return copy.deepcopy(Copied(), memo)


def plain():
    deeper()
    return plain()


def star(*arguments, **keywords):
    deeper()
    return star(*arguments, **keywords)


def by_map(_=0):
    deeper()
    return list(map(by_map, [1]))


def by_sorted(_=0):
    deeper()
    return sorted([1, 2], key=by_sorted)


def by_partial():
    deeper()
    return functools.partial(by_partial)()


def delegating():
    deeper()
    yield from delegating()


def by_loop():
    deeper()
    for value in (by_loop() for _ in range(1)):
        return value


async def coroutine():
    deeper()
    await coroutine()


def by_coroutine():
    first = coroutine()
    try:
        first.send(None)
    finally:
        first.close()


def by_exec():
    deeper()
    exec("by_exec()", globals())


@functools.lru_cache(None)
def cached(n):
    deeper()
    return cached(n + 1)


def by_json(_=None):
    deeper()
    return json.dumps(object(), default=by_json)


def by_regex(_=None):
    deeper()
    return re.sub("a", by_regex, "a")


CASES = {
    "plain": plain,
    "star": star,
    "len": lambda: len(Node()),
    "eq": lambda: Node() == Node(),
    "getattr": lambda: Node().x,
    "repr": lambda: repr(Node()),
    "prop": lambda: Node().prop,
    "call": lambda: Node()(),
    "init": Made,
    "map": by_map,
    "sorted": by_sorted,
    "partial": by_partial,
    "yield from": lambda: next(delegating()),
    "loop": by_loop,
    "coroutine": by_coroutine,
    "exec": by_exec,
    "cached": lambda: cached(0),
    "pickle": lambda: pickle.dumps(Reduced()),
    "deepcopy": lambda: copy.deepcopy(Copied()),
    "json": by_json,
    "regex": by_regex,
}


def run(limit):
    global depth
    depths = {}
    for name, case in CASES.items():
        depth = 0
        sys.setrecursionlimit(limit)
        try:
            case()
            how = "ended"
        except RecursionError:
            how = "RecursionError"
        sys.setrecursionlimit(1000)
        print(name, how, flush=True)
        depths[name] = depth
    with open(os.environ["TARE_TEST_DEPTHS"], "w") as file:
        json.dump(depths, file)


limit = int(sys.argv[1])
if "thread" in sys.argv:
    thread = threading.Thread(target=run, args=(limit,))
    thread.start()
    thread.join()
else:
    run(limit)
