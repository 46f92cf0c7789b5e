"""
Traces put together byte by byte, for what no writer would write; see traces/FORMAT.md.

    build = TraceBytes(library)                   library: from trace_library(folder)
    build.header(pid=7) + build.definitions([build.record("CODE", 1, 0, 1, "a.py", "f")])
        + build.events(1, [(10, "FRAME", 1, 0, 0), (5, "LEAVE", 0)])

Names, codes and fields of events and records are those of the newest golden trace.
"""

import ctypes
import struct
import subprocess
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
NEWEST = ROOT / "tests" / "golden" / "v1" / "gpu.tare"
PAGE = 4096
EVENTS, DEFS, LIVE = 1, 2, 3
RAW, ZSTD = 0, 1
FRAME = struct.Struct("<IIBBHIQQIIIIIIQQ")
HEADER = struct.Struct("<8sIIIIIIIIQQQQQ")
SIZES = {"u8": "<B", "u16": "<H", "u32": "<I", "u64": "<Q", "i64": "<q"}


def trace_library(folder):
    """The tree's own crc32c()."""
    library = Path(folder) / "trace_bytes.so"
    command = ["gcc", "-shared", "-fPIC", "-O2", "-I", ROOT, ROOT / "traces" / "crc32c.c", "-o", library]
    subprocess.run(command, check=True)
    loaded = ctypes.CDLL(str(library))
    loaded.crc32c.argtypes = [ctypes.c_uint32, ctypes.c_char_p, ctypes.c_size_t]
    loaded.crc32c.restype = ctypes.c_uint32
    return loaded


def zstd():
    loaded = ctypes.CDLL("libzstd.so.1")
    buffer = [ctypes.c_char_p, ctypes.c_size_t]
    loaded.ZSTD_compress.argtypes = [*buffer, *buffer, ctypes.c_int]
    loaded.ZSTD_decompress.argtypes = [*buffer, *buffer]
    for name in ("ZSTD_compress", "ZSTD_decompress"):
        getattr(loaded, name).restype = ctypes.c_size_t
    return loaded


def varint(number):
    out = bytearray()
    while number >= 0x80:
        out.append(number & 0x7F | 0x80)
        number >>= 7
    out.append(number)
    return bytes(out)


def string(text):
    data = text.encode() if isinstance(text, str) else text
    return struct.pack("<I", len(data)) + data


class TraceBytes:
    def __init__(self, library):
        self.library = library
        golden = NEWEST.read_bytes()
        (length,) = struct.unpack_from("<I", golden, 16)
        self.descriptor = golden[PAGE : PAGE + length]
        self.codes, self.records = {}, {}
        for line in self.descriptor.decode().splitlines():
            kind, number, name, *fields = line.split()
            if kind == "event":
                self.codes[name] = int(number)
            else:
                self.records[name] = int(number), [field.split(":")[1] for field in fields]

    def crc(self, data, crc=0):
        return self.library.crc32c(crc, data, len(data))

    def compress(self, data):
        room = ctypes.create_string_buffer(len(data) + len(data) // 128 + 1024)
        size = zstd().ZSTD_compress(room, len(room), data, len(data), 3)
        return room.raw[:size]

    def decompress(self, data, length):
        room = ctypes.create_string_buffer(length + 1)
        assert zstd().ZSTD_decompress(room, length, data, len(data)) == length
        return room.raw[:length]

    def header(self, pid=1, version=1, clock=2, shift=0, start=0, load=(1000, 1000), opened=(1000, 1000), end=None,
               lost=0, descriptor=None):  # fmt: skip
        """Header page and descriptor text. `end`: (units, monotonic ns) of a process that has exited."""
        text = self.descriptor if descriptor is None else descriptor
        pages = PAGE + -(-len(text) // PAGE) * PAGE
        head = HEADER.pack(
            b"TARETRC\n", version, pages, len(text), self.crc(text), clock, shift, pid, 0, start, *load, *opened
        )
        head += struct.pack("<II", self.crc(head), 0) + struct.pack("<QQ", *(end or (0, 0)))
        head += struct.pack("<QQIIII", lost, 0, 0, 0, 1 if end else 0, 0)
        return head.ljust(PAGE, b"\0") + text.ljust(pages - PAGE, b"\0")

    def frame(self, kind, payload, codec=RAW, thread=0, block=0, first_time=0, depth=0, events=0, times_bytes=0,
              ids_bytes=0, times_packed=0, clock=(0, 0), length=None):  # fmt: skip
        def head(crc):
            return FRAME.pack(
                0x4D524654, FRAME.size + len(payload) if length is None else length, kind, codec, 0, thread, block,
                first_time, depth, events, times_bytes, ids_bytes, times_packed, crc, *clock,
            )  # fmt: skip

        crc = self.crc(head(0))
        return head(self.crc(payload, crc) if kind != LIVE else crc) + payload

    def event(self, name, first, *fields):
        return varint(first << 5 | self.codes[name]) + b"".join(map(varint, fields))

    def events(self, thread, events, block=0, first_time=1000, depth=0):
        """Of [(time since the last one, name, fields...)]."""
        times = b"".join(varint(event[0]) for event in events)
        ids = b"".join(self.event(*event[1:]) for event in events)
        return self.streams(thread, times, ids, len(events), block, first_time, depth)

    def streams(self, thread, times, ids, count, block=0, first_time=1000, depth=0):
        return self.frame(
            EVENTS, times + ids, thread=thread, block=block, first_time=first_time, depth=depth, events=count,
            times_bytes=len(times), ids_bytes=len(ids), times_packed=len(times),
        )  # fmt: skip

    def record(self, name, *values):
        number, kinds = self.records[name]
        assert len(values) == len(kinds), (name, kinds)
        fields = b"".join(
            struct.pack(SIZES[kind], value) if kind in SIZES else string(value)
            for kind, value in zip(kinds, values)
        )
        return struct.pack("<IHH", 8 + len(fields), number, 0) + fields

    def definitions(self, records, block=0, slot=0):
        data = b"".join(records)
        return self.frame(DEFS, data, thread=slot, block=block, ids_bytes=len(data))
