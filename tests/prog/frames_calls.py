"""Calls of every kind, each function a known number of times; see tests/test_frames.py."""

import functools


def plain():
    return 1


def with_arguments(a, b=2, *c, d=4, **e):
    return a


class Thing:
    def __init__(self, value):
        self.value = value

    def method(self):
        return self.value

    @property
    def prop(self):
        return self.value

    @classmethod
    def made(cls):
        return cls(1)

    @staticmethod
    def static():
        return 2

    def __getitem__(self, item):
        return item

    def __call__(self):
        return 3

    def __add__(self, other):
        return self

    def __eq__(self, other):
        return True

    def __hash__(self):
        return 1


def key(value):
    return -value


def mapped(value):
    return value


@functools.lru_cache(maxsize=None)
def cached(value):
    return value


def closure():
    def inner():
        return 5

    return inner


def raises():
    raise ValueError("expected")


def catches():
    try:
        raises()
    except ValueError:
        return 6


def through_c(value):
    raise KeyError(value)


def generator(n):
    for i in range(n):
        yield i


def delegating(n):
    yield from generator(n)


def main():
    for i in range(100):
        plain()
        with_arguments(1, 2, 3, d=4, e=5)
        with_arguments(*(1, 2), **{"d": 3})
    thing = Thing(0)
    for i in range(100):
        thing.method()
        thing.prop
        thing[i]
        thing()
        thing + thing
        Thing.static()
    Thing.made()
    sorted(range(50), key=key)
    list(map(mapped, range(60)))
    for i in range(100):
        cached(i % 10)
    for i in range(20):
        closure()()
    for i in range(30):
        catches()
    for i in range(10):
        try:
            list(map(through_c, [i]))
        except KeyError:
            pass
    assert sum(generator(40)) == 780
    assert sum(delegating(25)) == 300
    [i for i in range(3)]
    sum(i for i in range(7))
    (lambda: 8)()
    {thing: 1}[Thing(9)]


main()
print("done")
