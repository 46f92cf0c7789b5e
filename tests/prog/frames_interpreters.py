"""Sub-interpreters, where there are any: their frames are not recorded, and nothing breaks."""

import importlib
import sys
import threading

interpreters = None
for name in ("_interpreters", "_xxsubinterpreters"):
    try:
        interpreters = importlib.import_module(name)
        break
    except ImportError:
        pass


def here(n):
    return n


def run():
    for _ in range(3):
        other = interpreters.create()
        interpreters.run_string(
            other,
            "def there(n): return n\nfor i in range(100): there(i)\n"
            "import json; print(json.dumps([there(1)]), flush=True)",
        )
        here(1)
        interpreters.destroy(other)


if interpreters:
    sys.stdout.flush()
    run()
    thread = threading.Thread(target=run)
    thread.start()
    thread.join()
for i in range(10):
    here(i)
print("done")
