"""HOW [CALLS]: calls leaf() a hundred times, or so often, then ends in the way that is asked for."""

import os
import signal
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import process_state


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
    for _ in range(int((sys.argv[2:] or [100])[0])):
        leaf()
    print("ends by", how, flush=True)
    process_state.show()
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
        os.execv(sys.executable, [sys.executable, __file__, "exit3", *sys.argv[2:]])
    elif how == "thread":
        import threading

        threading.Thread(target=lambda: threading.Event().wait(), daemon=True).start()
        process_state.show(threads=2)


end(sys.argv[1])
