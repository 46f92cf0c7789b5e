"""COUNTS: three threads call leaf() for ever, and count each call just before it, in the shared file COUNTS."""

import mmap
import sys
import threading
import time

THREADS = 3

with open(sys.argv[1], "wb") as file:
    file.write(bytes(8 * THREADS))
with open(sys.argv[1], "r+b") as file:
    counts = memoryview(mmap.mmap(file.fileno(), 0)).cast("Q")


def leaf():
    pass


def run(i):
    while True:
        counts[i] += 1
        leaf()


for i in range(THREADS):
    threading.Thread(target=run, args=(i,), daemon=True).start()
    while counts[i] < 2:
        time.sleep(0.0001)
time.sleep(1000)
