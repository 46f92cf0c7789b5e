"""What a trace holds of the program, and what it never does (docs/privacy.md); its file."""

import ctypes
import os
import struct
import subprocess

import pytest
from conftest import LIBTARE, PROG, TARE, clean_environment

NUMBER = "8401377265"
END = PROG / "process_end.py"
FRAME = struct.Struct(
    "<IIBBHIQQIIIIII"
)  # traces/layout.h, struct trace_frame without its clock
FRAME_BYTES = 72


def decompressed(trace):
    """All frames of a trace, compressed ones as they were before."""
    zstd = ctypes.CDLL("libzstd.so.1")
    zstd.ZSTD_decompress.restype = ctypes.c_size_t
    arguments = (ctypes.c_void_p, ctypes.c_size_t, ctypes.c_char_p, ctypes.c_size_t)
    zstd.ZSTD_decompress.argtypes = arguments
    data = trace.read_bytes()
    at = struct.unpack_from("<I", data, 12)[0]
    out = [data]

    def add(packed, size):
        if not size:
            return
        room = ctypes.create_string_buffer(size)
        assert zstd.ZSTD_decompress(room, size, packed, len(packed)) == size
        out.append(room.raw)

    while at + FRAME_BYTES <= len(data):
        sync, size, kind, codec, _, _, _, _, _, _, times, ids, packed, _ = (
            FRAME.unpack_from(data, at)
        )
        assert sync == 0x4D524654 and size >= FRAME_BYTES
        payload = data[at + FRAME_BYTES : at + size]
        if codec == 1 and kind != 3:
            add(payload[:packed], times)
            add(payload[packed:], ids)
        at += size
    assert len(out) > 2, "nothing is compressed in it"
    return b"".join(out)


@pytest.fixture(scope="module", params=["cpu", "cuda"])
def secrets(request, tmp_path_factory, sim, python):
    """A trace of the program, made without its command line."""
    folder = tmp_path_factory.mktemp("secrets")
    command = [python, PROG / "privacy.py", f"secret-argument-{NUMBER}"]
    if request.param == "cuda":
        command = sim(command)
    env = {
        "LD_PRELOAD": LIBTARE,
        "TARE_OUTPUT": f"{folder}/",
        "TARE_COMMAND_LINE": "0",
        "TARE_STACKS": "wait",
        "PRIVACY_TEST": f"secret-in-the-environment-{NUMBER}",
    }
    done = subprocess.run(
        list(map(str, command)),
        cwd=folder,
        env=clean_environment(env),
        capture_output=True,
        text=True,
    )
    assert done.stdout == "done\n", done.stderr
    (trace,) = folder.glob("*.tare")
    return trace


@pytest.mark.parametrize("view", ["bytes", "dump", "report"])
def test_no_data_of_the_program(secrets, view):
    if view == "bytes":
        text = decompressed(secrets)
    else:
        command = [TARE, view, "--format", "json", secrets]
        text = subprocess.run(command, capture_output=True, check=True).stdout
    assert b"privacy.py" in text and b"main" in text  # names and paths are in it
    assert b"secret-" not in text and NUMBER.encode() not in text


def test_command_line_is_left_out(secrets, tmp_path, python):
    env = clean_environment({})

    def facts(trace):
        return subprocess.run(
            [TARE, "info", trace], capture_output=True, text=True, check=True
        ).stdout

    assert "  command " not in facts(secrets) and "  exe " in facts(secrets)
    # The program has the interpreter's name then.
    report = subprocess.run(
        [TARE, "report", secrets], capture_output=True, text=True
    ).stdout
    assert report.startswith("python")
    command = [
        TARE,
        "record",
        "-o",
        "x.tare",
        "--no-command-line",
        python,
        END,
        "normal",
    ]
    subprocess.run(command, cwd=tmp_path, env=env, check=True)
    assert "  command " not in facts(tmp_path / "x.tare")
    command = [TARE, "record", "-o", "y.tare", python, END, "normal"]
    subprocess.run(command, cwd=tmp_path, env=env, check=True)
    assert f"{END} normal" in facts(tmp_path / "y.tare")


def trace_to(path, python, **env):
    own = {"LD_PRELOAD": LIBTARE, "TARE_OUTPUT": path, **env}
    command = [python, END, "normal"]
    done = subprocess.run(
        command, env=clean_environment(own), capture_output=True, text=True
    )
    assert (done.returncode, done.stdout.splitlines()[0], done.stderr) == (0, "ends by normal", "")


def test_for_its_owner_alone(tmp_path, python):
    before = os.umask(0)
    try:
        trace_to(tmp_path / "x.tare", python)
    finally:
        os.umask(before)
    assert os.stat(tmp_path / "x.tare").st_mode & 0o777 == 0o600


@pytest.mark.parametrize(
    "kind", ["file", "link", "dangling link", "folder link", "hard link", "fifo"]
)
def test_nothing_is_written_to_what_is_there(tmp_path, python, kind):
    """The next free name is taken: x-2.tare."""
    path, target = tmp_path / "x.tare", tmp_path / "target"
    if kind == "file":
        path.write_text("kept")
    elif kind == "fifo":
        os.mkfifo(path)
    elif kind == "dangling link":
        path.symlink_to(target)
    elif kind == "folder link":
        target.mkdir()
        path.symlink_to(target)
    else:
        target.write_text("kept")
        os.link(target, path) if kind == "hard link" else path.symlink_to(target)
    trace_to(path, python)
    if kind == "folder link":  # a folder is where traces go, also through a link
        assert len(list(target.glob("tare-*.tare"))) == 1
        return
    assert (tmp_path / "x-2.tare").read_bytes().startswith(b"TARETRC\n")
    if kind == "dangling link":
        assert not target.exists()
    elif kind != "fifo":
        assert path.read_text() == "kept"
    trace_to(path, python)
    assert (tmp_path / "x-3.tare").exists()
