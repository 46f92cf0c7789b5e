"""Frames that are entered more than once, thrown into, or never finished; see tests/test_frames.py."""

import asyncio
import contextlib
import gc


def counts(n):
    try:
        for i in range(n):
            yield i
    finally:
        cleanup()


def cleanup():
    pass


def stubborn():
    while True:
        try:
            yield 1
        except ValueError:
            yield 2
        except GeneratorExit:
            return


@contextlib.contextmanager
def managed():
    cleanup()
    yield 1
    cleanup()


async def awaited(n):
    for _ in range(n):
        await asyncio.sleep(0)
    return n


async def produces(n):
    for i in range(n):
        await asyncio.sleep(0)
        yield i


async def consumes():
    total = 0
    async for i in produces(5):
        total += i
    return total


async def cancelled():
    try:
        await asyncio.sleep(100)
    except asyncio.CancelledError:
        cleanup()
        raise


async def main():
    results = await asyncio.gather(awaited(3), awaited(5), consumes())
    task = asyncio.ensure_future(cancelled())
    await asyncio.sleep(0)
    task.cancel()
    try:
        await task
    except asyncio.CancelledError:
        results.append("cancelled")
    return results


def thrown():
    generator = stubborn()
    assert next(generator) == 1
    assert generator.throw(ValueError()) == 2
    assert next(generator) == 1
    try:
        generator.throw(KeyError("x"))
    except KeyError as error:
        print("thrown", error)
    generator = stubborn()
    next(generator)
    generator.close()
    generator = counts(10)
    next(generator)
    generator.close()
    for generator in (counts(3), counts(3)):
        next(generator)
    del generator
    gc.collect()


class Finalised:
    def __del__(self):
        cleanup()


def main_generators():
    print(list(counts(5)))
    thrown()
    with managed():
        pass
    for _ in range(10):
        Finalised()
    cycle = [counts(1)]
    next(cycle[0])
    cycle.append(cycle)
    del cycle
    gc.collect()
    print(asyncio.run(main()))


main_generators()
