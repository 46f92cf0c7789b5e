"""A child, forked in the middle of a call, goes on with it."""

import os
import sys


def leaf(n):
    return n


def forks():
    leaf(1)
    pid = os.fork()
    leaf(
        2
    )
    return pid


def between():
    pid = forks()
    leaf(3)
    return pid


def main():
    pid = between()
    leaf(4)
    if not pid:
        sys.exit(7)
    print(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))


main()
