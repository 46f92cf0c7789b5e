"""gevent: everything that waits switches to another stack."""
# ruff: noqa: E402 (what is patched has to be patched first)

from gevent import monkey

monkey.patch_all()

import os
import queue
import socket
import subprocess
import sys
import threading
import time

import gevent
import gevent.pool
import gevent.threadpool

import process_state


def leaf(n=0):
    return n


def sleeper(n):
    total = 0
    for i in range(n):
        total += leaf(i)
        time.sleep(0.0005)
    return total


def fails(n):
    gevent.sleep(0)
    leaf(n)
    raise ValueError(n)


def for_ever(log):
    try:
        while True:
            leaf()
            gevent.sleep(0)
    finally:
        log.append("killed")


def serve(server):
    connection, _ = server.accept()
    while data := connection.recv(100):
        connection.sendall(data[::-1])
    connection.close()


# A failing greenlet's traceback is printed with its address.
gevent.get_hub().print_exception = lambda context, kind, value, traceback: print("failed", repr(value))
print(sorted(job.value for job in gevent.joinall([gevent.spawn(sleeper, n) for n in range(10)])))
print([result for result in gevent.pool.Pool(3).imap(sleeper, range(6))])
failed = gevent.spawn(fails, 3)
failed.join()
print(repr(failed.exception))
log = []
endless = [gevent.spawn(for_ever, log) for _ in range(5)]
gevent.sleep(0.01)
gevent.killall(endless)
print(log)
try:
    with gevent.Timeout(0.01):
        for_ever(log)
except gevent.Timeout:
    print("timed out", log[-1])
jobs = queue.Queue()
workers = [threading.Thread(target=lambda: log.append(sleeper(jobs.get()))) for _ in range(4)]
for worker in workers:
    worker.start()
for n in range(4):
    jobs.put(n)
for worker in workers:
    worker.join()
print(sorted(log[-4:]))
server = socket.socket()
server.bind(("127.0.0.1", 0))
server.listen()
serving = gevent.spawn(serve, server)
client = socket.create_connection(server.getsockname())
client.sendall(b"reversed")
print(client.recv(100))
client.close()
serving.join()
server.close()
print(subprocess.run(["sh", "-c", "echo child; exit 3"], capture_output=True))
pool = gevent.threadpool.ThreadPool(2)
print(sorted(pool.map(leaf, range(5))))
pool.kill()
pid = os.fork()
if pid == 0:
    os._exit(sleeper(5))
print(os.waitpid(pid, 0)[1] >> 8)
abandoned = gevent.spawn(for_ever, [])
gevent.sleep(0)
del abandoned
process_state.show(threads=2)
sys.exit(leaf(4))
