#!/usr/bin/env python3
"""
Makes a trace small and plain, as a seed for the fuzzers: nothing is compressed, the descriptor's text has one
page, and live blocks take no more than what is in them.

    plain.py IN OUT
"""

import struct
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))
from trace_bytes import FRAME, HEADER, LIVE, PAGE, RAW, ZSTD, TraceBytes, trace_library

LIVE_HEAD = struct.Struct("<IIIIQQQQQIIIIII")


def header(build, data):
    """With one page of text."""
    head = bytearray(data[: 2 * PAGE])
    struct.pack_into("<I", head, 12, 2 * PAGE)
    struct.pack_into("<I", head, HEADER.size, build.crc(bytes(head[: HEADER.size])))
    return bytes(head)


def live(build, data, at, to):
    """The live block of the frame at `at`, as a frame for the place `to`."""
    start = -(-(at + FRAME.size) // PAGE) * PAGE
    head = list(LIVE_HEAD.unpack_from(data, start))
    lengths = head[6] & 0xFFFFFFFF, head[6] >> 32, head[8]
    offset, contents = LIVE_HEAD.size, b""
    for length, place in zip(lengths, (9, 11, 13)):
        contents += data[start + head[place] : start + head[place] + length]
        head[place : place + 2] = [offset, length]
        offset += length
    padding = b"\0" * (-(to + FRAME.size) % PAGE)
    return build.frame(LIVE, padding + LIVE_HEAD.pack(*head) + contents)


def plain(build, data):
    out = header(build, data)
    (at,) = struct.unpack_from("<I", data, 12)
    while at < len(data):
        _, length, kind, codec, _, thread, block, first, depth, events, times, ids, packed, _, *clock = (
            FRAME.unpack_from(data, at)
        )
        if kind == LIVE:
            out += live(build, data, at, len(out))
        else:
            payload = data[at + FRAME.size : at + length]
            if codec == ZSTD:
                payload = (build.decompress(payload[:packed], times) if times else b"") + build.decompress(
                    payload[packed:], ids
                )
            out += build.frame(
                kind, payload, RAW, thread, block, first, depth, events, times, ids, times, clock
            )
        at += length
    return out


def main():
    with tempfile.TemporaryDirectory() as folder:
        build = TraceBytes(trace_library(folder))
        Path(sys.argv[2]).write_bytes(plain(build, Path(sys.argv[1]).read_bytes()))


if __name__ == "__main__":
    main()
