#!/usr/bin/env python3
"""Reads the simulator's counters, the oracle of the tests: from a finished, a killed or a running
process alike. README.md describes the file.

    c = counts.read("counts.4711")
    c.calls("cudaLaunchKernel")                 # all threads, all kinds
    c.calls("cudaMemcpyAsync", kind="D2H", tid=4711)
    c.bytes(...), c.wait_ns(...)                # same arguments; c.idle_ns(...), c.host_ns(...)
    c.total()                                   # {(function, kind): Cell}
    c.threads                                   # {tid: {(function, kind): Cell}}

As a command: counts.py FILE...  prints a table.
"""
import collections
import glob
import struct
import sys

KINDS = ("", "H2H", "H2D", "D2H", "D2D", "default")
HEADER = struct.Struct("<8s12I8x")
CELL = struct.Struct("<5Q")
SLOT_HEAD = struct.Struct("<II16s")

Cell = collections.namedtuple("Cell", "calls bytes wait_ns idle_ns host_ns")
NOTHING = Cell(0, 0, 0, 0, 0)


class Counts:
    def __init__(self, pid, threads, names, libraries, left_out):
        self.pid = pid
        self.threads = threads          # {tid: {(function, kind): Cell}}
        self.thread_names = names       # {tid: name}
        self.libraries = libraries      # {function: soname}
        self.left_out = left_out        # libraries or threads that found no room

    def _sum(self, field, function, kind, tid):
        return sum(getattr(cell, field)
                   for t, cells in self.threads.items() if tid is None or t == tid
                   for (f, k), cell in cells.items() if f == function and kind in (None, k))

    def calls(self, function, kind=None, tid=None):
        return self._sum("calls", function, kind, tid)

    def bytes(self, function, kind=None, tid=None):
        return self._sum("bytes", function, kind, tid)

    def wait_ns(self, function, kind=None, tid=None):
        return self._sum("wait_ns", function, kind, tid)

    def idle_ns(self, function, kind=None, tid=None):
        return self._sum("idle_ns", function, kind, tid)

    def host_ns(self, function, kind=None, tid=None):
        return self._sum("host_ns", function, kind, tid)

    def total(self):
        total = {}
        for cells in self.threads.values():
            for key, cell in cells.items():
                total[key] = Cell(*(a + b for a, b in zip(total.get(key, NOTHING), cell)))
        return total


def text(raw):
    return raw.split(b"\0")[0].decode()


def read(path):
    with open(path, "rb") as f:
        (magic, pid, _, _, columns, library_bytes, name_bytes, names_at, slots_at, slot_bytes,
         functions, threads, left_out) = HEADER.unpack(f.read(HEADER.size))
        if magic != b"TARESIM3":
            raise ValueError(f"{path}: not a file of counters")
        f.seek(names_at)
        names = f.read(functions * (library_bytes + name_bytes))
        size = library_bytes + name_bytes
        rows = [(text(names[i:i + library_bytes]), text(names[i + library_bytes:i + size]))
                for i in range(0, len(names), size)]
        result, thread_names = {}, {}
        for slot in range(threads):
            f.seek(slots_at + slot * slot_bytes)
            tid, _, comm = SLOT_HEAD.unpack(f.read(SLOT_HEAD.size))
            cells = f.read(functions * columns * CELL.size)
            thread_names[tid] = text(comm)
            counted = result.setdefault(tid, {})
            for i, cell in enumerate(CELL.iter_unpack(cells)):
                if cell[0]:
                    function = rows[i // columns][1]
                    key = function, KINDS[i % columns]
                    old = counted.get(key, NOTHING)
                    counted[key] = Cell(*(a + b for a, b in zip(old, cell)))
    return Counts(pid, result, thread_names, {f: l for l, f in rows}, left_out)


def read_all(prefix):
    """The counters of every process whose file's path begins so, oldest process id first."""
    return sorted((read(p) for p in glob.glob(glob.escape(str(prefix)) + "*")), key=lambda c: c.pid)


def main():
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    for path in sys.argv[1:]:
        c = read(path)
        print(f"{path}: pid {c.pid}, {len(c.threads)} threads"
              + (f", {c.left_out} LEFT OUT" if c.left_out else ""))
        for tid, cells in c.threads.items():
            print(f"  thread {tid} {c.thread_names[tid]}")
            for (function, kind), cell in sorted(cells.items()):
                print(f"    {cell.calls:8} {function:45} {kind:8}{cell.bytes:14} B "
                      f"{cell.wait_ns / 1e6:12.3f} ms waited  {c.libraries[function]}")


if __name__ == "__main__":
    main()
