"""The simulated CUDA device itself: does the real torch run on it, and are its counts right?

Everything else that is tested on it rests on these. `make sim` builds it.
"""
import os
import pathlib
import re
import signal
import subprocess
import sys
import sysconfig
import textwrap

import pytest

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parent.parent
BUILD = pathlib.Path(os.environ.get("TARE_BUILD") or ROOT / "build").resolve()
LIB = BUILD / "sim" / "lib"
SITE = pathlib.Path(sysconfig.get_path("purelib"))
HEADERS = {"12": SITE / "nvidia/cuda_runtime/include", "13": SITE / "nvidia/cu13/include"}

sys.path.insert(0, str(HERE))
import counts  # noqa: E402

pytestmark = pytest.mark.skipif(not (LIB / "libtaresim.so").exists(), reason="make sim")

SCOPES = ("private", "global")


def run(script, *args, scope="private", status=0, command=None, **env):
    """Runs a script, given as text or path, on the device; returns its stdout. None may use stderr."""
    base = {k: v for k, v in os.environ.items() if not k.startswith("TARE_") and k != "LD_PRELOAD"}
    code = ["-c", textwrap.dedent(script)] if isinstance(script, str) else [str(script)]
    done = subprocess.run(
        [HERE / "run", "--scope", scope, "--build", BUILD, "--", *(command or [sys.executable]), *code, *args],
        env={**base, **{k: str(v) for k, v in env.items()}}, capture_output=True, text=True, timeout=100)
    assert done.returncode == status, done.stderr
    assert not done.stderr
    return done.stdout


# ---- the runtime by itself


@pytest.mark.parametrize("major", ("12", "13"))
def test_c_program(major, tmp_path):
    library = LIB / f"libcudart.so.{major}"
    if not library.exists() or not HEADERS[major].exists():
        pytest.skip(f"no headers of CUDA {major}")
    program = tmp_path / "check_device"
    subprocess.run(["gcc", "-std=gnu17", "-D_GNU_SOURCE", "-O1", "-Wall", "-Wextra", "-Werror",
                    "-isystem", HEADERS[major], "-idirafter", HERE / "include", HERE / "check_device.c",
                    f"-L{LIB}", f"-l:{library.name}", f"-Wl,-rpath,{LIB}", "-o", program], check=True)
    done = subprocess.run([program], capture_output=True, text=True, env={
        "TARE_SIM_COUNTS": str(tmp_path / "counts-%p"), "TARE_SIM_KERNELS": "slow:20000",
        "TARE_SIM_QUEUE": "8"})
    assert (done.returncode, done.stdout) == (0, "")
    # What has no body says so, once.
    assert done.stderr == (f"tare sim: {library.name}: cudaDeviceFlushGPUDirectRDMAWrites "
                           "is not modelled\n")
    parent, child = counts.read_all(tmp_path / "counts-")
    assert parent.calls("cudaDeviceFlushGPUDirectRDMAWrites") == 2
    assert parent.calls("cudaMemcpyAsync", "H2D") == 2
    assert parent.bytes("cudaMemcpyAsync", "D2H") == 128
    assert parent.calls("cudaMemcpy_ptds") == 1
    assert parent.wait_ns("cudaFree") > 1e7
    # A pageable copy to the host waits; the pinned one before it does not.
    assert parent.wait_ns("cudaMemcpyAsync", "D2H") > 1e7
    assert parent.wait_ns("cudaMemcpyAsync", "H2D") == 0
    assert list(child.total()) == [("cudaGetDeviceCount", "")]
    assert child.calls("cudaGetDeviceCount") == 1
    # How long calls took, waiting included.
    for (name, kind), cell in parent.total().items():
        assert cell.host_ns >= cell.wait_ns, (name, kind)
    assert parent.libraries["cudaFree"] == library.name


def dynamic_names(library, which):
    out = subprocess.run(["nm", "-D", which, library], capture_output=True, text=True, check=True).stdout
    return {line.split()[-1] for line in out.splitlines()
            if line.split()[-2] in "TUWV" and "cuda" in line.split()[-1]}


@pytest.mark.parametrize("major, real", (("13", "cu13/lib"), ("12", "cuda_runtime/lib")))
def test_exports_what_the_real_one_does(major, real):
    library, real = LIB / f"libcudart.so.{major}", SITE / "nvidia" / real / f"libcudart.so.{major}"
    if not library.exists() or not real.exists():
        pytest.skip(f"no CUDA {major} to compare with")
    assert not dynamic_names(real, "--defined-only") - dynamic_names(library, "--defined-only")


def test_never_calls_itself_through_the_plt():
    for library in [*LIB.glob("lib*"), *BUILD.glob("sim/stubs-*/lib*")]:
        relocations = subprocess.run(["readelf", "-rW", library], capture_output=True, text=True).stdout
        called = set(re.findall(r"(?:JUMP_SLOT?|GLOB_DAT)\s+\S+\s+(\w+)", relocations))
        assert not {name for name in called if re.match(r"_*(cu|nccl|nvrtc)", name)}, library


# ---- torch on it

ALL_SORTS = """
    import torch, torch.nn as nn
    D = "cuda"
    assert torch.cuda.is_available() and torch.cuda.device_count() == 1
    print(torch.cuda.get_device_name())
    a = torch.zeros(4, device=D)
    b = a + a
    b.add_(1)
    print(b.sum().item(), torch.arange(4).to(D).cpu().tolist())
    torch.cuda.synchronize()

    for optimizer in torch.optim.Adam, torch.optim.AdamW:
        m = nn.Sequential(nn.Linear(8, 16), nn.LayerNorm(16), nn.GELU(), nn.Linear(16, 2)).to(D)
        o = optimizer(m.parameters(), 1e-3)
        for step in range(3):
            loss = m(torch.randn(4, 8).to(D)).square().mean()
            o.zero_grad()
            loss.backward()
            o.step()
        print(loss.shape)

    x = torch.randn(100, device=D)
    print(x[x > 0].shape)

    side, before, after = torch.cuda.Stream(), *(torch.cuda.Event(enable_timing=True) for _ in "ab")
    with torch.cuda.stream(side):
        before.record()
        x * 2
        after.record()
    torch.cuda.current_stream().wait_stream(side)
    after.synchronize()
    print(before.elapsed_time(after) > 0, after.query(), side.query())

    p = torch.randn(1000).pin_memory()
    print(p.is_pinned(), torch.randn(3).is_pinned())
    back = p.to(D, non_blocking=True).to("cpu", non_blocking=True)
    torch.cuda.synchronize()
    print(bool((back == p).all()))

    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        y = m(torch.zeros(1, 8, device=D))
    for _ in range(3):
        graph.replay()
    torch.cuda.synchronize()
    print(y.shape)
"""


@pytest.mark.parametrize("scope", SCOPES)
def test_torch(scope):
    assert run(ALL_SORTS, scope=scope).splitlines() == [
        "Simulated GPU", "0.0 [0, 1, 2, 3]", "torch.Size([])", "torch.Size([])", "torch.Size([0])",
        "True True True", "True False", "True", "torch.Size([1, 2])"]


def test_torch_libraries():
    """What goes through cuDNN, cuSOLVER, cuFFT and cuSPARSE, and mixed precision."""
    assert run("""
        import time, warnings, torch, torch.nn as nn
        warnings.simplefilter("ignore")
        D = "cuda"
        m = nn.Sequential(nn.Conv2d(3, 4, 3), nn.BatchNorm2d(4), nn.ReLU(), nn.MaxPool2d(2)).to(D)
        m(torch.randn(2, 3, 8, 8, device=D)).sum().backward()
        for f in "inv", "qr", "svd", "eigh", "cholesky":
            getattr(torch.linalg, f)(torch.eye(4, device=D))
        torch.fft.fft(torch.randn(16, device=D))
        nn.LSTM(8, 16, bidirectional=True).to(D)(torch.randn(3, 5, 8, device=D))[0].sum().backward()
        torch.eye(4).to_sparse_csr().to(D) @ torch.eye(4, device=D)
        layer = nn.TransformerEncoderLayer(16, 2, 32, batch_first=True).to(D)
        o = torch.optim.AdamW(layer.parameters(), fused=True)
        scaler = torch.amp.GradScaler(D)
        with torch.autocast(D, torch.float16):
            loss = layer(torch.randn(2, 4, 16, device=D)).float().mean()
        scaler.scale(loss).backward()
        scaler.step(o)
        scaler.update()
        time.sleep(0.1)  # as in COUNTED
        print("done")
    """) == "done\n"


def test_values():
    """What the program wrote can be read back, what kernels would have computed is 0."""
    assert run("""
        import torch
        D = "cuda"
        t = torch.tensor(7, device=D)
        y = torch.zeros(100, device=D) + 1
        z = torch.arange(5, device=D)
        print(t.item(), [v.item() for v in torch.tensor([3, 4, 5]).to(D)], y.sum().item())
        for _ in range(20):
            torch.tensor(1.0, device=D)     # leaves its value in memory that is used again
            m = y > 0
            print(len(y[m]) + len(torch.unique(y)) + len(torch.nonzero(m)), end=" ")
    """) == "7 [3, 4, 5] 0.0\n" + "0 " * 20


def cases():
    for folder in ROOT / "tests" / "cases", ROOT.parent / "shared" / "cases":
        if folder.is_dir():
            return sorted(folder.glob("*.py"))
    return []


@pytest.mark.parametrize("scope", SCOPES)
def test_cases(scope):
    """The public cases, one after the other in one process: importing torch takes most of the time."""
    if not cases():
        pytest.skip("no cases here")
    run("""
        import runpy, sys
        for case in sys.argv[1:]:
            runpy.run_path(case)
    """, *map(str, cases()), scope=scope)


# ---- the oracle


# Python's end and torch's autograd thread race for the objects of the last backward (in torch itself,
# on any device), and a loser aborts: scripts that end with a backward settle first.
COUNTED = """
    import os, signal, time, torch
    x = torch.zeros(8, device="cuda", requires_grad=True)
    w = torch.ones(8).pin_memory()
    for _ in range(7):
        x.detach().add(1)
    for _ in range(5):
        x.detach()[0].item()
    for _ in range(3):
        torch.zeros(1000).to("cuda")
    for _ in range(2):
        w.to("cuda", non_blocking=True)
    (x * x).sum().backward()
    torch.cuda.synchronize()
    time.sleep(0.1)
    print(os.getpid(), flush=True)
    if os.environ.get("KILL"):
        os.kill(os.getpid(), signal.SIGKILL)
"""


def launches(c, tid=None):
    return sum(c.calls(f, tid=tid) for f in ("__cudaLaunchKernel", "cudaLaunchKernel", "cudaLaunchKernelExC"))


@pytest.mark.parametrize("kill", ("", "1"))
@pytest.mark.parametrize("scope", SCOPES)
def test_counts(tmp_path, kill, scope):
    out = run(COUNTED, scope=scope, status=-signal.SIGKILL if kill else 0, KILL=kill,
              TARE_SIM_COUNTS=tmp_path / "c-%p")
    pid = int(out)
    c = counts.read(tmp_path / f"c-{pid}")
    assert c.pid == pid and not c.left_out
    main, = (t for t in c.threads if t == pid)
    autograd = [t for t in c.threads if t != main and launches(c, t)]
    assert len(autograd) == 1 and c.thread_names[autograd[0]].startswith("pt_autograd")
    assert c.calls("cudaMemcpyAsync", "D2H") == 5
    assert c.bytes("cudaMemcpyAsync", "D2H") == 20
    assert c.calls("cudaMemcpyAsync", "H2D") == 5
    assert c.bytes("cudaMemcpyAsync", "H2D") == 3 * 4000 + 2 * 32
    assert c.calls("cudaStreamSynchronize") == 8
    assert c.calls("cudaDeviceSynchronize", tid=main) == 1
    # zeros, 7 add, mul, sum; backward: ones_like on the caller's side, the rest on autograd's thread.
    assert launches(c, main) >= 10
    assert launches(c) == launches(c, main) + launches(c, autograd[0])
    assert sum(cell.calls for cell in c.total().values()) == sum(
        cell.calls for cells in c.threads.values() for cell in cells.values())


def test_waiting_is_real_and_booked(tmp_path):
    """Slow kernels: launches return at once, the read waits for all of them; a full queue blocks."""
    script = """
        import time, torch
        x = torch.zeros(8, device="cuda")
        torch.cuda.synchronize()
        start = time.perf_counter()
        for _ in range(20):
            x.add_(1)
        launched = time.perf_counter() - start
        x.sum().item()
        print(launched, time.perf_counter() - start)
    """
    launched, done = map(float, run(script, TARE_SIM_KERNEL_US=5000,
                                    TARE_SIM_COUNTS=tmp_path / "a-%p").split())
    assert launched < done and done >= 0.1
    c, = counts.read_all(tmp_path / "a-")
    assert c.wait_ns("cudaStreamSynchronize") + c.wait_ns("cudaMemcpyAsync", "D2H") > 5e7
    assert c.wait_ns("__cudaLaunchKernel") == 0
    launched, done = map(float, run(script, TARE_SIM_KERNEL_US=5000, TARE_SIM_QUEUE=4,
                                    TARE_SIM_COUNTS=tmp_path / "b-%p").split())
    assert launched >= 0.07
    c, = counts.read_all(tmp_path / "b-")
    assert c.wait_ns("__cudaLaunchKernel") > 5e7


def test_forked_workers(tmp_path):
    """DataLoader workers, forked off a process that uses CUDA, end well and count by themselves."""
    assert run("""
        import torch
        from torch.utils.data import DataLoader
        torch.zeros(1, device="cuda")
        for batch in DataLoader(range(16), batch_size=4, num_workers=1, pin_memory=True):
            assert batch.is_pinned()
        print("done")
    """, TARE_SIM_COUNTS=tmp_path / "c-%p") == "done\n"
    parent = counts.read_all(tmp_path / "c-")[0]
    assert parent.calls("cudaHostAlloc") >= 1


def test_devices():
    script = """
        import torch
        print(torch.cuda.is_available(), torch.cuda.device_count())
        if torch.cuda.device_count() > 1:
            x = torch.arange(3, device="cuda:1")
            print(x.device, torch.ones(2).to("cuda:0").to("cuda:1").cpu().tolist())
    """
    assert run(script, TARE_SIM_DEVICES=2) == "True 2\ncuda:1 [1.0, 1.0]\n"
    assert run(script, CUDA_VISIBLE_DEVICES="").split() == ["False", "0"]


# ---- how programs get onto it

LOADED = """
    import os, sys
    print(os.environ.get("LD_PRELOAD", "").split(":")[0])
    print("torch" in sys.modules, "ctypes" in sys.modules, "libcudart" in open("/proc/self/maps").read())
    print(any(p.endswith("tests/sim/site") for p in sys.path), len(sys.meta_path))
    print(os.environ.get("GREETING", ""))
"""


@pytest.mark.parametrize("scope", SCOPES)
def test_run_keeps_what_is_there(scope, tmp_path):
    """LD_PRELOAD keeps its first entry, the user's sitecustomize runs, no torch means no library."""
    first = tmp_path / "libfirst.so"
    subprocess.run(["gcc", "-shared", "-fPIC", "-x", "c", "/dev/null", "-o", first], check=True)
    (tmp_path / "sitecustomize.py").write_text("import os; os.environ['GREETING'] = 'hello'\n")
    lines = run(LOADED, scope=scope, command=["env", f"LD_PRELOAD={first}:" if scope == "private" else "-",
                                              sys.executable][:: 1 if scope == "private" else 2],
                PYTHONPATH=tmp_path).splitlines()
    preload, modules, path, greeting = lines
    if scope == "private":
        assert preload == str(first)
        assert modules == "False False False"
    else:
        assert modules == "False False True"
    assert path.startswith("False")
    assert greeting == "hello"


def test_private_scope_is_private():
    """The runtime is not in the global scope until torch's own global dependencies put it there."""
    assert run("""
        import ctypes, os, sys
        for library in os.environ["TARE_SIM_LIBRARIES"].split(":"):
            ctypes.CDLL(library)
        print(hasattr(ctypes.CDLL(None), "cudaMalloc"))
    """) == "False\n"
