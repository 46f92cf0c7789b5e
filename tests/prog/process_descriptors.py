"""Closes descriptors that are not its own, and uses those numbers for files of its own."""

import os


def leaf():
    return 1


def work(calls):
    return sum(leaf() for _ in range(calls))


print(sorted(os.listdir("/proc/self/fd"))[:-1])
work(1000)
os.closerange(3, 256)
files = [open(f"file-{i}", "w") for i in range(20)]
for file in files:
    work(500)
    file.write("what I wrote\n")
for file in files:
    file.close()
os.closerange(3, 256)
work(1000)
print(sorted(os.listdir("/proc/self/fd"))[:-1])
