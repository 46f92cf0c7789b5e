"""Makes children in the way that is asked for, each of which calls work(), and tells what they gave back."""

import multiprocessing
import os
import subprocess
import sys
import threading

import process_state


def leaf():
    return 1


def work():
    return sum(leaf() for _ in range(100))


def fork():
    pid = os.fork()
    if pid == 0:
        os._exit(work() % 256)
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])


def fork_to_the_end():
    """The child goes on as a whole interpreter does: exit handlers, destructors."""
    pid = os.fork()
    if pid == 0:
        sys.exit(work() % 256)
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])


def double_fork():
    """As a daemon starts: the grandchild has lost its parent and answers by a pipe."""
    answer, grandchild = os.pipe()
    pid = os.fork()
    if pid == 0:
        os.setsid()
        if os.fork() == 0:
            os.write(grandchild, b"%d" % work())
        os._exit(0)
    os.waitpid(pid, 0)
    os.close(grandchild)
    with os.fdopen(answer) as file:
        return int(file.read())


def daemon():
    """As daemon(3) does it, and with every descriptor closed."""
    answer, grandchild = os.pipe()
    pid = os.fork()
    if pid == 0:
        os.setsid()
        if os.fork():
            os._exit(0)
        os.chdir("/")
        os.umask(0)
        os.dup2(grandchild, 0)
        os.closerange(1, 1024)
        for _ in range(2):
            os.open(os.devnull, os.O_RDWR)
        left = " ".join(os.listdir("/proc/self/fd"))
        os.write(0, f"{work()} {os.getsid(0) != os.getpid()} {left}".encode())
        os._exit(0)
    os.waitpid(pid, 0)
    os.close(grandchild)
    with os.fdopen(answer) as file:
        return file.read()


def fork_while_busy():
    """Other threads are in the middle of calls when the process is forked, 20 times."""
    stop = False

    def spin():
        while not stop:
            work()

    threads = [threading.Thread(target=spin) for _ in range(2)]
    for thread in threads:
        thread.start()
    results = [fork() for _ in range(20)]
    stop = True
    for thread in threads:
        thread.join()
    return results


def by_multiprocessing(method):
    context = multiprocessing.get_context(method)
    with context.Pool(2) as pool:
        return [result.get() for result in [pool.apply_async(work) for _ in range(4)]]


def by_subprocess():
    code = "import sys; sys.exit(sum(1 for _ in range(7)))"
    return subprocess.run([sys.executable, "-c", code]).returncode


def by_shell():
    command = "for i in 1 2 3; do true | cat; echo $i; done; exit 5"
    return subprocess.run(["sh", "-c", command]).returncode


def by_vfork():
    return os.waitstatus_to_exitcode(
        os.waitpid(os.posix_spawn("/bin/sh", ["sh", "-c", "exit 6"], os.environ), 0)[1]
    )


if __name__ == "__main__":
    how = sys.argv[1]
    if how in ("spawn", "forkserver"):
        print(by_multiprocessing(how))
    elif how == "pool":
        print(by_multiprocessing("fork"))
    else:
        print(globals()[how]())
    process_state.show()
