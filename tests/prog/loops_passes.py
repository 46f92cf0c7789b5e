"""
Loops of which `# PASSES n` says how many passes are seen, and `# PASSES n?` that they may also be
unknown. Each body is at most a few calls, so that only what happens in them tells the passes.
"""

import functools
import sys


def f(e):
    return e


def h():
    return 0


def any_arguments(e=0, *rest, **named):
    return e


def g(e=0):
    return -e


class Plain:
    def __new__(cls, e):
        return super().__new__(cls)

    def __init__(self, e):
        self.e = e

    @property
    def value(self):
        return 1

    def __getitem__(self, i):
        return f(i)

    def method(self):
        return 2


class Tree:
    def __init__(self, *children):
        self.children = children

    def walk(self):
        h()
        for child in self.children:  # PASSES 6
            child.walk()


def direct():
    for e in range(12):  # PASSES 12
        f(e)


def key_function():
    four = [4, 3, 2, 1]
    for _ in range(3):  # PASSES 3?
        sorted(four, key=f)


def constructor():
    for e in range(6):  # PASSES 6?
        Plain(e)


def key_function_and_more():
    four = [4, 3, 2, 1]
    for _ in range(3):  # PASSES 3
        sorted(four, key=f)
        g()


def two_key_functions():
    four = [4, 3, 2, 1]
    for _ in range(3):  # PASSES 3
        sorted(four, key=f)
        sorted(four, key=g)


def key_function_and_sometimes_more():
    four = [4, 3, 2, 1]
    for i in range(30):  # PASSES 30?
        if i == 7:
            g()
        sorted(four, key=f)


def mapped():
    for _ in range(4):  # PASSES 4?
        list(map(f, (1, 2, 3)))


def method():
    plain = Plain(0)
    for _ in range(5):  # PASSES 5
        plain.method()


def keywords():
    for e in range(7):  # PASSES 7?
        any_arguments(e=e)


def star():
    for e in range(7):  # PASSES 7?
        any_arguments(*(e, 1), **{"a": 1})


def prop():
    plain = Plain(0)
    for _ in range(7):  # PASSES 7?
        plain.value


def item():
    plain = Plain(0)
    for i in range(8):  # PASSES 8?
        plain[i]


def partial():
    bound = functools.partial(f, 1)
    for _ in range(9):  # PASSES 9?
        bound()


def while_true():
    n = 0
    while True:  # PASSES 10
        n += 1
        if f(n) >= 10:
            break


def while_condition():
    n = 10
    while f(n) > 0:  # PASSES 10
        g()
        n -= 1


def while_continue():
    n = 0
    while n < 10:  # PASSES 10
        n += 1
        h()
        if n % 2:
            continue
        g()


def nested():
    for i in range(3):  # PASSES 3
        h()
        for j in range(4):  # PASSES 12
            g()
            while f(j) < 0:
                g()


def nested_without_own():
    for i in range(3):  # PASSES 3?
        for j in range(4):  # PASSES 12
            h()
            g()


def nested_after():
    for i in range(3):  # PASSES 3
        for j in range(4):  # PASSES 12
            h()
        g()


def handler():
    for i in range(10):  # PASSES 10
        try:
            h()
            if i % 2:
                raise ValueError
        except ValueError:
            g()
        h()


def handler_continues():
    for i in range(10):  # PASSES 10
        try:
            if f(i) % 2:
                raise ValueError
        except ValueError:
            continue
        g()


def broken():
    for i in range(10):  # PASSES 4
        h()
        if g(i) == -3:
            break


def generated():
    for i in range(6):  # PASSES 6
        h()
        yield i
        g()


def uses_generated():
    for x in generated():  # PASSES 6
        h()


def interleaved():
    for x, y in zip(two_a_pass(), two_a_pass()):  # PASSES 8
        g()


def two_a_pass():
    for _ in range(4):
        h()
        yield 1
        g()
        yield 2


def comprehension():
    return [g(f(e)) for e in range(5)]  # PASSES 5


def turn(n):
    h()
    g(n)


def class_body():
    class Made:
        for i in range(6):  # PASSES 6
            f(i)
        for i in range(4):  # PASSES 4
            locals()[f"m{i}"] = f(i)

        class Inner:
            for i in range(5):  # PASSES 5
                for j in range(3):  # PASSES 15
                    f(j)
                f(i)

    assert hasattr(Made, "m3") and Made.Inner.j == 2


def driver():
    for n in range(11):  # PASSES 11
        turn(n)


def main():
    direct()
    key_function()
    constructor()
    key_function_and_more()
    two_key_functions()
    key_function_and_sometimes_more()
    mapped()
    method()
    keywords()
    star()
    prop()
    item()
    partial()
    while_true()
    while_condition()
    while_continue()
    nested()
    nested_without_own()
    nested_after()
    handler()
    handler_continues()
    broken()
    uses_generated()
    interleaved()
    comprehension()
    class_body()
    driver()
    Tree(Tree(Tree(), Tree()), Tree(Tree()), Tree()).walk()


print(sys.version)
main()
