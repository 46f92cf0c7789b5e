"""
What programs do with an interpreter: each case by its name, else all but NOT_QUICK. At the end: what
the process looks like from inside.
"""

import asyncio
import atexit
import contextlib
import gc
import os
import queue
import signal
import subprocess
import sys
import threading
import time
import traceback
import warnings

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import process_state

CASES = {}


def case(function):
    CASES[function.__name__] = function
    return function


def leaf(n=0):
    return n


# -------------------------------------------------------------------------------- generators, async


@case
def generators():
    log = []

    def inner():
        try:
            while True:
                log.append((yield leaf(len(log))))
        except KeyError as error:
            log.append(repr(error))
            yield "kept"
        finally:
            log.append("closed")

    def outer():
        result = yield from inner()
        log.append(result)

    g = outer()
    print(next(g), g.send("a"), g.throw(KeyError("k")))
    g.close()
    g = outer()
    next(g)
    del g
    g = outer()
    next(g)
    try:
        g.throw(ValueError("through"))
    except ValueError:
        log.append(traceback.format_exc().count("in inner"))
    cycle = [outer()]
    next(cycle[0])
    cycle.append(cycle)
    del cycle
    gc.collect()
    print(log)


@case
def asynchronous():
    async def items(n):
        try:
            for i in range(n):
                yield i
                await asyncio.sleep(0)
        finally:
            print("items closed")

    async def worker(name, jobs):
        total = 0
        while (n := await jobs.get()) is not None:
            total += sum([leaf(i) async for i in items(n)])
        return name, total

    async def cancelled():
        try:
            await asyncio.sleep(100)
        except asyncio.CancelledError:
            print("cancelled")
            raise

    async def main():
        jobs = asyncio.Queue()
        workers = [asyncio.create_task(worker(f"w{i}", jobs)) for i in range(3)]
        for n in [3, 4, 5] + [None] * 3:
            await jobs.put(n)
        print(sorted(total for _, total in await asyncio.gather(*workers)))
        task = asyncio.create_task(cancelled())
        await asyncio.sleep(0)
        task.cancel()
        print(await asyncio.gather(task, return_exceptions=True))
        loop = asyncio.get_running_loop()
        print(await loop.run_in_executor(None, leaf, 7))
        process = await asyncio.create_subprocess_exec("sh", "-c", "echo child; exit 3", stdout=-1)
        print((await process.communicate())[0], process.returncode)
        async for i in items(10):
            if i == 2:
                break

    asyncio.run(main())


# -------------------------------------------------------------------------------- exceptions


@case
def through_c():
    """Python, C, Python, C, and an exception all the way back."""
    import ctypes
    import functools
    import json
    import operator
    import re

    class Fails:
        def __lt__(self, other):
            raise KeyError("lt")

        def __hash__(self):
            raise KeyError("hash")

        def __index__(self):
            raise KeyError("index")

        def __iter__(self):
            yield 1
            raise KeyError("iter")

        def __del__(self):
            raise KeyError("del")

    def fails(*arguments):
        leaf()
        raise KeyError("called")

    seen = []
    sys.unraisablehook = lambda arguments: seen.append(repr(arguments.exc_value))
    for attempt in (
        lambda: sorted([Fails(), Fails()]),
        lambda: {Fails(): 1},
        lambda: range(Fails()),
        lambda: sum(Fails()),
        lambda: list(map(fails, [1])),
        lambda: functools.reduce(fails, [1, 2]),
        lambda: sorted([2, 1], key=lambda n: sorted([n], key=fails)),
        lambda: re.sub("a", fails, "a"),
        lambda: json.dumps(object(), default=fails),
        lambda: operator.methodcaller("get", 1)(functools.partial(fails)),
        lambda: type("Made", (), {"__set_name__": fails})(),
        lambda: eval("fails()", {"fails": fails}),
    ):
        try:
            attempt()
        except (KeyError, AttributeError) as error:
            print(repr(error), traceback.format_exc().count("fails"))
            error.__traceback__ = None
    callback = ctypes.CFUNCTYPE(ctypes.c_int)(fails)
    print(callback())
    gc.collect()
    print(sorted(seen))
    sys.unraisablehook = sys.__unraisablehook__


# -------------------------------------------------------------------------------- tracing, profiling


@case
def profilers():
    import cProfile
    import pstats
    import trace

    profile = cProfile.Profile()
    profile.runcall(lambda: [leaf(i) for i in range(100)])
    stats = pstats.Stats(profile).stats
    print(sorted((name, calls[0]) for (_, _, name), calls in stats.items() if name == "leaf"))
    tracer = trace.Trace(count=1, trace=0)
    tracer.runfunc(lambda: [leaf(i) for i in range(3)])
    print(sorted(tracer.results().counts.values()))
    log = []
    sys.settrace(lambda frame, event, argument: log.append((event, frame.f_code.co_name)))
    with contextlib.suppress(ValueError):
        leaf(int("x"))
    sys.settrace(None)
    print(log)


@case
def coverage():
    import coverage

    cover = coverage.Coverage(data_file=None)
    with cover.collect():
        exec(compile("def f(n):\n if n:\n  return 1\n return 2\nf(1)\n", __file__ + "x", "exec"))
    print(sorted(os.path.basename(name) for name in cover.get_data().measured_files()))


# -------------------------------------------------------------------------------- signals


@case
def interval_signals():
    """At 1 kHz, while Python and threads run: a handler in Python that prints and calls."""
    count = 0
    out = os.open(os.devnull, os.O_WRONLY)

    def handler(number, frame):
        nonlocal count
        count += leaf(1)
        os.write(out, b"%d" % count)

    for which, number in ((signal.ITIMER_REAL, signal.SIGALRM), (signal.ITIMER_PROF, signal.SIGPROF)):
        count = 0
        old = signal.signal(number, handler)
        signal.setitimer(which, 0.001, 0.001)
        while count < 100:
            sum(leaf(i) for i in range(1000))
        signal.setitimer(which, 0)
        leaf()
        signal.signal(number, old)
        print(which, "arrived")
    os.close(out)


@case
def handler_that_raises():
    class Stop(Exception):
        pass

    def handler(number, frame):
        raise Stop

    old = signal.signal(signal.SIGALRM, handler)
    caught = 0
    while caught < 30:
        signal.setitimer(signal.ITIMER_REAL, 0.0005)
        try:
            while True:
                sum(leaf(i) for i in range(50))
        except Stop:
            caught += 1
    signal.signal(signal.SIGALRM, old)
    print(caught)


@case
def fork_in_handler():
    statuses = []

    def handler(number, frame):
        pid = os.fork()
        if pid == 0:
            os._exit(leaf(5))
        statuses.append(os.waitpid(pid, 0)[1] >> 8)

    old = signal.signal(signal.SIGALRM, handler)
    for _ in range(5):
        done = len(statuses)
        signal.setitimer(signal.ITIMER_REAL, 0.002)
        while len(statuses) == done:
            sum(leaf(i) for i in range(100))
    signal.signal(signal.SIGALRM, old)
    print(statuses)


# -------------------------------------------------------------------------------- threads


@case
def many_threads():
    """500 at the same time, each with calls."""
    threading.stack_size(128 * 1024)
    barrier = threading.Barrier(501)
    total = queue.Queue()

    def run():
        barrier.wait()
        total.put(sum(leaf(i) for i in range(20)))

    threads = [threading.Thread(target=run) for _ in range(500)]
    for thread in threads:
        thread.start()
    barrier.wait()
    for thread in threads:
        thread.join()
    threading.stack_size(0)
    print(sum(total.get() for _ in threads))


@case
def exits_in_threads():
    def by_sys_exit():
        leaf()
        sys.exit(3)

    def by_exception():
        raise ValueError("in a thread")

    threading.excepthook = lambda arguments: print(arguments.exc_type.__name__, arguments.exc_value)
    for target in (by_sys_exit, by_exception):
        thread = threading.Thread(target=target)
        thread.start()
        thread.join()
    local = threading.local()

    class Finalised:
        def __del__(self):
            leaf()

    def with_local():
        local.value = Finalised()

    thread = threading.Thread(target=with_local)
    thread.start()
    thread.join()


# -------------------------------------------------------------------------------- children


@case
def multiprocess():
    import multiprocessing

    for method in ("fork", "spawn", "forkserver"):
        context = multiprocessing.get_context(method)
        values = context.Queue()
        processes = [context.Process(target=values.put, args=(i,)) for i in range(2)]
        for process in processes:
            process.start()
        print(method, sorted(values.get() for _ in processes))
        for process in processes:
            process.join()
        print([process.exitcode for process in processes])
        with context.Manager() as manager:
            shared = manager.dict(a=1)
            shared["b"] = 2
            print(dict(shared))
        crash = context.Process(target=os.abort)
        crash.start()
        crash.join()
        print(crash.exitcode)
    with context.Pool(2, maxtasksperchild=1) as pool:
        print(pool.map(leaf, range(4), chunksize=1))
    from multiprocessing import shared_memory

    memory = shared_memory.SharedMemory(create=True, size=100)
    memory.close()
    memory.unlink()


@case
def storm():
    """100 shells and 3 compilers."""
    script = "i=0; while [ $i -lt 24 ]; do /bin/true; (exit 1); echo $i | cat >/dev/null; i=$((i+1)); done; exit 4"
    print(subprocess.run(["sh", "-c", script], capture_output=True))
    for level in ("-O0", "-O1", "-O2"):
        command = ["gcc", level, "-c", "-x", "c", "-", "-o", os.devnull]
        print(subprocess.run(command, input=b"int f(void) { return 1; }\n", capture_output=True))
    print(subprocess.run(["ls", "/nonexistent"], capture_output=True, env={"LC_ALL": "C"}).returncode)


@case
def storm_of_1000():
    script = "i=0; while [ $i -lt 250 ]; do /bin/true; (exit 1); echo $i | cat >/dev/null; i=$((i+1)); done"
    print(subprocess.run(["sh", "-c", script], capture_output=True))


@case
def spawns():
    """Ways to start a child."""
    command = [sys.executable, "-c", "import sys; sys.exit(3)"]
    for more in (
        {},
        {"close_fds": False},
        {"start_new_session": True},
        {"preexec_fn": leaf},
        {"env": {}},
        {"cwd": "/"},
    ):
        print(subprocess.run(command, capture_output=True, **more).returncode)
    print(os.system("exit 5") >> 8)
    with os.popen("echo popen") as stream:
        print(stream.read())
    print(os.spawnv(os.P_WAIT, "/bin/sh", ["sh", "-c", "exit 6"]))
    pid, terminal = __import__("pty").fork()
    if pid == 0:
        os.execv("/bin/sh", ["sh", "-c", "exit 7"])
    os.waitpid(pid, 0)
    os.close(terminal)


@case
def fork_at_exit():
    def at_exit():
        try:
            pid = os.fork()
        except RuntimeError as error:  # from 3.12 on
            print(error, flush=True)
            return
        if pid == 0:
            print("child at exit", leaf(1), flush=True)
            os._exit(0)
        os.waitpid(pid, 0)
        print("parent at exit", flush=True)

    atexit.register(at_exit)


# -------------------------------------------------------------------------------- descriptors, folders


@case
def descriptors():
    """Files of ours in every low number, and back."""
    saved = [os.dup(fd) for fd in range(3)]
    path = os.path.abspath("low")
    for fd in range(3):
        os.dup2(os.open(path, os.O_RDWR | os.O_CREAT | os.O_APPEND), fd)
    os.closerange(max(saved) + 1, 1024)
    sum(leaf(i) for i in range(100000))
    os.write(1, b"written\n")
    for fd in range(3):
        os.dup2(saved[fd], fd)
        os.close(saved[fd])
    print(open(path).read())


@case
def directories():
    here = os.getcwd()
    os.mkdir("gone")
    os.chdir("gone")
    os.rmdir(os.path.join(here, "gone"))
    sum(leaf(i) for i in range(100000))
    os.chdir(here)
    if os.geteuid() == 0:
        pid = os.fork()
        if pid == 0:
            os.mkdir("jail")
            os.chroot("jail")
            os.chdir("/")
            sum(leaf(i) for i in range(100000))
            os._exit(len(os.listdir("/")))
        print(os.waitpid(pid, 0)[1])


# -------------------------------------------------------------------------------- errors


@case
def errors():
    """errno, warnings and tracebacks are the program's own."""
    import ctypes

    libc = ctypes.CDLL(None, use_errno=True)
    ctypes.set_errno(33)
    callback = ctypes.CFUNCTYPE(ctypes.c_int)(lambda: leaf(1))
    callback()
    print(ctypes.get_errno(), libc.close(-1), ctypes.get_errno())
    for bad in ("open('/nonexistent')", "1/0", "import nonexistent", "leaf(1, 2, 3)", "(lambda: x)()"):
        try:
            exec(bad)
        except Exception:
            print(traceback.format_exc())
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        warnings.warn("mine", stacklevel=2)
        if sys.version_info >= (3, 12):
            pid = os.fork()
            if pid == 0:
                os._exit(0)
            os.waitpid(pid, 0)
    print([(str(w.message), w.lineno) for w in seen])
    print([(f.filename == __file__, f.lineno, f.name) for f in traceback.extract_stack()])
    print(sys._getframe().f_back.f_code.co_name, sys.gettrace(), sys.getprofile())


@case
def code_extras():
    """Others that hang something on code objects hear of their own alone."""
    import ctypes

    name = "PyUnstable_Eval_RequestCodeExtraIndex"
    if not hasattr(ctypes.pythonapi, name):
        name = "_PyEval_RequestCodeExtraIndex"
    freed = []
    code_extras.callback = ctypes.CFUNCTYPE(None, ctypes.c_void_p)(freed.append)
    request = getattr(ctypes.pythonapi, name)
    request.restype = ctypes.c_ssize_t
    print(request(code_extras.callback) >= 0)
    for i in range(20):
        exec(f"def f(): return {i}\nf()", {})
    gc.collect()
    print(freed)


@case
def memory():
    """A MemoryError under RLIMIT_AS is one, and the program goes on."""
    import resource

    limit = 400 << 20
    old = resource.getrlimit(resource.RLIMIT_AS)
    used = int(open("/proc/self/statm").read().split()[0]) * 4096
    resource.setrlimit(resource.RLIMIT_AS, (used + limit, old[1]))
    try:
        bytearray(limit * 2)
    except MemoryError:
        print("MemoryError")
    sum(leaf(i) for i in range(100000))
    threads = []
    try:
        for _ in range(200):
            threads.append(threading.Thread(target=time.sleep, args=(0.05,)))
            threads[-1].start()
    except RuntimeError as error:
        threads.pop()
        print(error)
    for thread in threads:
        thread.join()
    resource.setrlimit(resource.RLIMIT_AS, old)


@case
def few_descriptors():
    import resource

    old = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (20, old[1]))
    files = []
    try:
        while True:
            files.append(open(os.devnull))
    except OSError as error:
        print(error, len(files) > 5)
    sum(leaf(i) for i in range(300000))
    thread = threading.Thread(target=leaf)
    thread.start()
    thread.join()
    for file in files:
        file.close()
    resource.setrlimit(resource.RLIMIT_NOFILE, old)


NOT_QUICK = ("coverage", "many_threads", "multiprocess", "storm_of_1000", "few_descriptors")

if __name__ == "__main__":
    for name in sys.argv[1:] or [name for name in CASES if name not in NOT_QUICK]:
        print("==", name, flush=True)
        CASES[name]()
    process_state.show()
