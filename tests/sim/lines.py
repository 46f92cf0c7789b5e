"""Reads what the simulator wrote under TARE_SIM_LINES: each call that may wait, with its Python stack.

    for process in lines.read_all(prefix):      # {pid: [Call]}, in the order of the calls
    lines.waits(calls)                          # those that do, each a Wait

A Wait is a synchronise, with the copy to or from the host just before it on its thread from the same
line if there is one; or such a copy alone, where it is synchronous or its host memory is not pinned.
"""
import collections
import glob
import re

Frame = collections.namedtuple("Frame", "file line function")
Call = collections.namedtuple("Call", "tid thread function kind bytes pageable frames")
Wait = collections.namedtuple("Wait", "function copy call")

FRAME = re.compile(r'  File "(.*)", line (\d+|\?\?\?) in (.*)')


def text(escaped):
    """CPython writes what is not ASCII as \\xhh, \\uhhhh or \\Uhhhhhhhh."""
    def replace(match):
        return chr(int(match.group(1)[1:], 16))

    return re.sub(r"\\(x[0-9a-f]{2}|u[0-9a-f]{4}|U[0-9a-f]{8})", replace, escaped)


def read(path):
    calls = []
    with open(path) as f:
        for line in f:
            if line.startswith("call "):
                _, tid, function, kind, size, pageable, thread = line.rstrip("\n").split(" ", 6)
                calls.append(Call(int(tid), thread, function, kind, int(size), pageable == "pageable", []))
            elif (frame := FRAME.match(line)):
                number = int(frame[2]) if frame[2].isdigit() else 0
                calls[-1].frames.append(Frame(text(frame[1]), number, text(frame[3])))
    return calls


def read_all(prefix):
    return {int(path.rsplit(".", 1)[1]): read(path) for path in glob.glob(glob.escape(str(prefix)) + ".*")}


def is_copy_wait(call):
    return call.kind in ("H2D", "D2H") and ("Async" not in call.function or call.pageable)


def waits(calls):
    found, copies = [], {}

    def settle(tid):
        copy = copies.pop(tid, None)
        if copy and is_copy_wait(copy):
            found.append(Wait(copy.function, copy, copy))

    for call in calls:
        if "Synchronize" in call.function:
            copy = copies.get(call.tid)
            if copy and call.function.startswith("cudaStream") and copy.frames == call.frames:
                del copies[call.tid]
            else:
                settle(call.tid)
                copy = None
            found.append(Wait(call.function, copy, call))
        else:
            settle(call.tid)
            copies[call.tid] = call
    for tid in list(copies):
        settle(tid)
    return found
