"""PLUGIN HOW: while a thread is in a call of the CUDA runtime, and stays there: forks, or ends by HOW."""

import ctypes
import os
import signal
import sys
import threading

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import process_state

plugin = ctypes.CDLL(sys.argv[1])
how = sys.argv[2]


def leaf():
    return 1


def work():
    return sum(leaf() for _ in range(100))


def block():
    work()
    plugin.plugin_block()
    work()


thread = threading.Thread(target=block, daemon=True)
thread.start()
plugin.plugin_wait()
print("held", work(), plugin.plugin_calls(10))
process_state.show(threads=2)
if how == "fork":
    for _ in range(3):
        pid = os.fork()
        if pid == 0:
            os._exit(work() + plugin.plugin_calls(11))
        print(os.waitpid(pid, 0)[1] >> 8)
    plugin.plugin_release()
    thread.join()
    print("released", work())
elif how == "exit":
    sys.exit(5)
elif how == "_exit":
    os._exit(6)
elif how == "SIGKILL":
    os.kill(os.getpid(), signal.SIGKILL)
elif how == "exec":
    os.execv(sys.executable, [sys.executable, "-c", "print('executed')"])
