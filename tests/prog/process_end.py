"""Calls leaf() a hundred times, then ends in the way that is asked for."""

import os
import signal
import sys


def leaf():
    pass


def by_signal(number):
    os.kill(os.getpid(), number)
    while True:
        pass


def crash():
    import ctypes

    ctypes.string_at(0)


def end(how):
    for _ in range(100):
        leaf()
    print("ends by", how, flush=True)
    if how.startswith("SIG"):
        by_signal(getattr(signal, how))
    elif how == "exit3":
        sys.exit(3)
    elif how == "exception":
        raise ValueError("on purpose")
    elif how == "_exit":
        os._exit(4)
    elif how == "abort":
        os.abort()
    elif how == "crash":
        crash()
    elif how == "exec":
        os.execv(sys.executable, [sys.executable, __file__, "exit3"])
    elif how == "thread":
        import threading

        threading.Thread(target=lambda: threading.Event().wait(), daemon=True).start()


end(sys.argv[1])
