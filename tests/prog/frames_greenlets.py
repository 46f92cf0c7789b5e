"""Greenlets that switch in the middle of calls, that are abandoned, and that are thrown into."""

import gc

import greenlet


def leaf(n):
    return n


def worker(name, n):
    for i in range(n):
        leaf(i)
        inner(i)
    return name


def inner(i):
    leaf(i)
    hub.switch(i)
    leaf(i)


def take_turns():
    live = []
    for i in range(5):
        live.append((greenlet.greenlet(worker, hub), (i, 10 + i)))
    while live:
        going_on = []
        for other, arguments in live:
            leaf(0)
            other.switch(*arguments)
            leaf(1)
            if not other.dead:
                going_on.append((other, ()))
        live = going_on


def main():
    take_turns()
    for i in range(10):
        greenlet.greenlet(worker, hub).switch("abandoned", 3)
    gc.collect()
    leaf(5)
    other = greenlet.greenlet(worker, hub)
    other.switch("thrown into", 3)
    try:
        other.throw(ValueError)
    except ValueError:
        print("thrown")
    leaf(6)


hub = greenlet.getcurrent()
main()
