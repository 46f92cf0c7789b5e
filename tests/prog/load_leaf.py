"""CALLS: waits until its input ends, then calls leaf that often."""

import sys


def leaf():
    pass


sys.stdin.read()
for _ in range(int(sys.argv[1])):
    leaf()
print("over")
