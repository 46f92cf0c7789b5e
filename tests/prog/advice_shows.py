"""Habits that advice is about, each in a loop of its own; with the argument `without`: the same loops without
them. Loops that only look like it are there in both."""
import sys
import time

import torch

WITH = sys.argv[1:] != ["without"]
device = "cuda" if torch.cuda.is_available() else "cpu"
steps = range(60)
ones = torch.ones(64, device=device)
total = torch.zeros(64, device=device)


def work():
    total.add_(ones)


def small_copies():
    parts = [torch.ones(8) for _ in range(6)]
    for _ in steps:
        for part in parts[: 6 if WITH else 1]:
            part.to(device)
        work()


def hidden_sync():
    for _ in steps:
        work()
        if WITH:
            total.sum().item()
    total.sum().item()


def in_place():
    state = torch.zeros(64, device=device)
    for _ in steps:
        if WITH:
            state = state.mul(0.5)
            state = state + ones
        else:
            state.mul_(0.5)
            state.add_(ones)


def kept_by_autograd():
    weight = torch.ones(64, device=device, requires_grad=True)
    for _ in steps:
        (weight.mul(2.0).exp()).sum().backward()


def loose(*numbers):
    return numbers


def named(first, second, third):
    return first


def star_arguments():
    for _ in steps:
        for number in range(40):
            if WITH:
                loose(number, 2, 3)
            else:
                named(number, 2, 3)
        work()


def sums(numbers):
    return numbers[0]


def constant_lists():
    for _ in steps:
        for _ in range(40):
            if WITH:
                sums([1, 2, 3, 4, 5, 6])
            else:
                sums((1, 2, 3, 4, 5, 6))
        work()


def number_of(text):
    if not text.isdigit():
        raise ValueError(text)
    return int(text)


def deeper(text):
    return number_of(text)


def exceptions():
    for _ in steps:
        for text in ("1", "x", "2", "y") if WITH else ("1", "2"):
            try:
                deeper(text)
            except ValueError:
                pass
        work()


class Countdown:
    def __init__(self):
        self.left = 3

    def __iter__(self):
        return self

    def __next__(self):
        if not self.left:
            raise StopIteration
        self.left -= 1
        return self.left


def pairs():
    yield 1
    yield 2


def ends_of_iterators():
    """What ends an iterator, or closes a generator, is no exception of the program's."""
    for _ in steps:
        for _ in Countdown():
            work()
        any(value for value in pairs())


for habit in (small_copies, hidden_sync, in_place, kept_by_autograd, star_arguments, constant_lists, exceptions,
              ends_of_iterators):
    habit()
time.sleep(0.05)
