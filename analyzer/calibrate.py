"""What a Python call costs, in loops of each kind. `tare calibrate` runs it bare and traced, in turn.

Prints a line for each: its name, how many calls are in it, and ns for all of them, the median of several rounds.
Functions whose name begins with tare_ are those that are looked for in the trace.
"""
import sys
from time import perf_counter_ns

ROUNDS = 80
CALLS = 300  # so few that in most rounds no block is written: that is a span of its own in the trace


def tare_call(a, b):
    return a


class Thing:
    def __init__(self):
        self.value = 1
        self.other = 2

    def tare_method(self, more):
        self.value = more
        return self.other

    @property
    def tare_property(self):
        return self.value


def tare_fib(n):
    return n if n < 2 else tare_fib(n - 1) + tare_fib(n - 2)


def tare_generator(n):
    for i in range(n):
        yield i


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


def properties():
    thing = Thing()
    for _ in range(CALLS):
        thing.tare_property
    return CALLS


def generators():
    for _ in tare_generator(CALLS):
        pass
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


# Functions that are each called once a round, with what a program does between the calls: what the hook needs
# is then no longer all at hand.
BODY = """
def tare_apart_{n}(text, numbers, table):
    key = text[{n} % 7:{n} % 7 + 4]
    table[key] = table.get(key, {n}) + len(numbers)
    words = ("%s-%d %.3f" % (key, {n}, {n} / 7)).upper().replace("-", " ").split(" ")
    total = sum(numbers[{n} % 5:]) * {n} + len(set(words)) + int(words[1])
    both = dict(zip(words, sorted(numbers[:6], reverse=True)))
    return tare_near_{n}(repr(both).encode(), words, total)


def tare_near_{n}(data, words, total):
    low, high = min(data), max(data)
    name = "_".join(words).lower().title()
    same = name.startswith("{n}") or data.count(b"{n}") > 3 or data.find(b"'") < 0
    return isinstance(total, int) and divmod(total, low + high + 1), same, [*words, name].index(name)
"""
FUNCTIONS = 300


def make_apart():
    names = {}
    exec("".join(BODY.format(n=n) for n in range(FUNCTIONS)), names)
    functions = [names[f"tare_apart_{n}"] for n in range(FUNCTIONS)]
    text, numbers, table = "abcdefghijklmnop", list(range(20)), {}

    def apart():
        for function in functions:
            function(text, numbers, table)
        return 2 * FUNCTIONS
    return apart


def measure(function):
    """Some rounds unmeasured: until the interpreter has made the instructions special to their operands."""
    times = []
    for _ in range(20):
        count = function()
    for _ in range(ROUNDS):
        start = perf_counter_ns()
        function()
        times.append(perf_counter_ns() - start)
    return count, sorted(times)[len(times) // 2]


for function in (calls, methods, recursion, properties, generators, native_generators, native, empty, make_apart()):
    print(function.__name__, *measure(function))
sys.stdout.flush()
