"""Recursion as deep as each interpreter allows it, in the main thread and in another."""

import sys
import threading


def down(n):
    return n and 1 + down(n - 1)


def endless(depth):
    try:
        return endless(depth + 1)
    except RecursionError:
        return depth


class Nested:
    """Each level is a Python call by way of C."""

    def __init__(self, depth):
        self.inner = Nested(depth - 1) if depth else None

    def __len__(self):
        return 1 + len(self.inner) if self.inner is not None else 0


def recurse(deep):
    print("900 deep:", down(900))
    print("endless:", endless(0))
    print("through C:", len(Nested(150)))
    sys.setrecursionlimit(deep + 1000)
    print("deep:", down(deep))
    print("again:", down(deep))
    sys.setrecursionlimit(1000)
    print("endless:", endless(0))


# From 3.11 on Python recursion takes no C stack; before, it has to fit there with room for a hook.
deep = 40000 if sys.version_info >= (3, 11) else 5000
recurse(deep)
thread = threading.Thread(target=recurse, args=(deep,))
thread.start()
thread.join()
threading.stack_size(256 * 1024)
thread = threading.Thread(target=lambda: print("small stack:", down(100)))
thread.start()
thread.join()
print("after:", down(900))
