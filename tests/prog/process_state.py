"""What a process looks like from inside: for programs that are run bare and traced."""

import contextlib
import gc
import os
import re
import signal
import threading
import time
import warnings


def show_warning(message, category, *where, **more):
    """From 3.12 on a fork of a process with threads warns, and names the process's number."""
    print("warning:", category.__name__, str(message).replace(str(os.getpid()), "PID"), flush=True)


warnings.showwarning = show_warning


def show(threads=1):
    """
    Environment but for the preload, descriptors, threads (of which so many are to be left; None: they come
    and go), children, signals.
    """
    for name in sorted(os.environ):
        if not name.startswith("TARE_") and name not in ("LD_PRELOAD", "PWD"):
            print(name, os.environ[name])
    # Pools of processes are in cycles, and have descriptors: when they go depends on what threads allocated.
    gc.collect()
    for fd in sorted(os.listdir("/proc/self/fd"), key=int)[:-1]:
        print("fd", fd)
    deadline = time.monotonic() + 10
    while threads and len(os.listdir("/proc/self/task")) > threads and time.monotonic() < deadline:
        time.sleep(0.001)  # one that was joined has not left yet
    print("threads", threads and len(os.listdir("/proc/self/task")), threading.active_count())
    for child in open("/proc/thread-self/children").read().split():
        # multiprocessing's names a descriptor: which, depends on when loaders before it let go of theirs.
        command = re.sub(r"main\(\d+\)", "main(FD)", open(f"/proc/{child}/cmdline").read())
        print("child", command.split("\0"))
    for number in range(1, 65):
        with contextlib.suppress(ValueError, OSError):
            handler = signal.getsignal(number)
            print("signal", number, getattr(handler, "__qualname__", handler))
    print("umask", oct(os.umask(0o22)), "niceness", os.nice(0))
    print("mask", signal.pthread_sigmask(signal.SIG_BLOCK, []), flush=True)
