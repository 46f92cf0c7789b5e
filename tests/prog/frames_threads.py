"""Threads that each call a known number of functions, one of them from the start of another."""

import threading
import time


def work(n):
    return n


def inner(n):
    for i in range(n):
        work(i)


def outer(n):
    thread = threading.Thread(target=inner, args=(n,))
    thread.start()
    for i in range(n):
        work(i)
    thread.join()


def raises():
    raise SystemExit


def sleeps():
    time.sleep(0.01)
    work(1)


threads = [threading.Thread(target=outer, args=(100 * i,)) for i in range(1, 5)]
threads += [threading.Thread(target=raises), threading.Thread(target=sleeps, daemon=True)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
for _ in range(20):
    thread = threading.Thread(target=work, args=(1,))
    thread.start()
    thread.join()
print("done")
