"""CUDA calls out of Python by ctypes, with the GIL and without; prints the line of each."""

import ctypes
import sys
import threading

released = ctypes.CDLL(sys.argv[1])
held = ctypes.PyDLL(sys.argv[1])
lines = []


def note():
    frame = sys._getframe(1)
    lines.append("%s:%d" % (frame.f_code.co_name, frame.f_lineno + 1))


def with_gil():
    note()
    held.synchronize()
    for i in range(3):
        note()
        held.synchronize()


def without_gil():
    note()
    released.synchronize()
    for i in range(3):
        note()
        released.synchronize()


def both():
    note()
    held.synchronize()
    note()
    released.synchronize()


def generator():
    for i in range(2):
        note()
        held.synchronize()
        yield i
        note()
        released.synchronize()


@ctypes.CFUNCTYPE(None)
def called_back():
    both()
    note()
    held.synchronize()


with_gil()
if "frames" in sys.argv:
    without_gil()
both()
thread = threading.Thread(target=both)
thread.start()
thread.join()
list(generator())
released.call_on_thread(called_back)
lines.append("none")
released.synchronize_on_thread()
lines.append("none")
held.synchronize_on_thread()
released.call_on_thread(called_back)
with_gil()
print("\n".join(lines))
