"""What a Python call costs, in loops of each kind. `tare calibrate` runs it bare and traced, both at once and in turns.

For each line on stdin, each loop has a few rounds, and a line is printed for it: its name, how many calls are in a round,
and ns for all of them, the median of the rounds. Functions whose name begins with tare_ are those that are looked for in
the trace.
"""
import sys
from time import perf_counter_ns

WARM_ROUNDS = 20
ROUNDS = 9
CALLS = 300  # so few that in most rounds no block is written: that is a span of its own in the trace


def tare_call(a, b):
    return a


def tare_subscript(self, key):
    return key


def tare_init(self, value):
    self.value = value


class Thing:
    __getitem__ = tare_subscript

    def __init__(self):
        self.value = 1
        self.other = 2

    def tare_method(self, more):
        self.value = more
        return self.other

    @property
    def tare_property(self):
        return self.value


class Other:
    __init__ = tare_init


def tare_starred(a, b):
    return a


def tare_keywords(a, b):
    return a


def tare_fib(n):
    return n if n < 2 else tare_fib(n - 1) + tare_fib(n - 2)


def tare_generator(n):
    for i in range(n):
        yield i


def tare_delegate(n):
    for i in range(n):
        yield i


def delegating(n):
    yield from tare_delegate(n)


def tare_creation(n):
    yield n


def tare_native_generator(n):
    for i in range(n):
        yield i


def tare_native(value):
    return value


def calls():
    for i in range(CALLS):
        tare_call(i, 2)
    return CALLS


def methods():
    thing = Thing()
    for i in range(CALLS):
        thing.tare_method(i)
    return CALLS


def recursion():
    tare_fib(12)
    return 465


def starred():
    pair = (1, 2)
    for _ in range(CALLS):
        tare_starred(*pair)
    return CALLS


def keywords():
    both = {"a": 1, "b": 2}
    for _ in range(CALLS):
        tare_keywords(**both)
    return CALLS


def inits():
    for i in range(CALLS):
        Other(i)
    return CALLS


def subscripts():
    thing = Thing()
    for i in range(CALLS):
        thing[i]
    return CALLS


def properties():
    thing = Thing()
    for _ in range(CALLS):
        thing.tare_property
    return CALLS


def generators():
    for _ in tare_generator(CALLS):
        pass
    return CALLS


def delegations():
    for _ in delegating(CALLS):
        pass
    return CALLS


made = []


def creations():
    """They are kept: the end of one that has not begun may be a frame too."""
    for i in range(CALLS):
        made.append(tare_creation(i))
    return CALLS


def native_generators():
    sum(tare_native_generator(CALLS))
    return CALLS


def native():
    for _ in map(tare_native, range(CALLS)):
        pass
    return CALLS


def empty():
    for i in range(CALLS):
        i
    return CALLS


def measure(function):
    times = []
    for _ in range(ROUNDS):
        made.clear()
        start = perf_counter_ns()
        count = function()
        times.append(perf_counter_ns() - start)
    return count, sorted(times)[len(times) // 2]


LOOPS = (calls, methods, recursion, starred, keywords, inits, properties, subscripts, generators, delegations, creations,
         native_generators, native, empty)

# Unmeasured: until the interpreter has made the instructions special to their operands.
for function in LOOPS:
    for _ in range(WARM_ROUNDS):
        function()
for _ in sys.stdin:
    for function in LOOPS:
        print(function.__name__, *measure(function))
    sys.stdout.flush()
