"""Waits for ever in a function that is known, having said so."""

import sys
import time


def hang():
    print("hanging", flush=True)
    time.sleep(600)  # line: hang


def main(depth):
    if depth:
        return main(depth - 1)
    return hang()


sys.exit(main(3))
