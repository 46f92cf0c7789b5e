"""Calls on known lines: each callee notes the line that its caller is on, as the interpreter says it."""

import sys

seen = []


def note(frame):
    caller = frame.f_back
    seen.append("%s %s:%d" % (frame.f_code.co_name, caller.f_code.co_name, caller.f_lineno))


def callee(*arguments, **keywords):
    note(sys._getframe())
    return 1


class Thing:
    def __getitem__(self, item):
        note(sys._getframe())
        return item

    @property
    def prop(self):
        note(sys._getframe())
        return 2


def simple():
    callee()
    callee()


def multi_line():
    return [
        callee(),
        callee(
            1,
            callee(),
        ),
        callee(*(1, 2)),
        callee(**{"a": 1}),
    ]


def loops():
    thing = Thing()
    for i in range(30):
        callee(
            i)
        thing[i]
        while i % 2:
            i -= 1
            thing.prop
    return [callee(i) for i in range(3)]


def generator():
    yield callee()
    for i in range(3):
        yield callee(
            i
        )


def handles():
    try:
        callee()
        raise ValueError
    except ValueError:
        callee()
    finally:
        callee()


# Hundreds of names, so that instructions need EXTENDED_ARG, and a jump of more than 256 units.
names = "\n    ".join("a%d = %d" % (i, i) for i in range(300))
exec(
    "def long():\n    %s\n    for i in range(3):\n        %s\n        callee(a299)\n    callee(a298, a297)\n"
    % (names, names.replace("\n", "\n    "))
)


def main():
    simple()
    multi_line()
    loops()
    list(generator())
    handles()
    long()  # noqa: F821
    sorted([3, 1, 2], key=callee)
    callee() if seen else None


main()
sys.stdout.write("\n".join(seen) + "\n")
