"""Short threads, a pool of threads, and one that outlives the main thread."""

import concurrent.futures
import threading
import time

import process_state


def leaf():
    return 1


def work(calls):
    return sum(leaf() for _ in range(calls))


results = []
for _ in range(64):
    thread = threading.Thread(target=lambda: results.append(work(10)))
    thread.start()
    thread.join()
print(len(results), sum(results))

with concurrent.futures.ThreadPoolExecutor(4) as pool:
    print(sum(pool.map(work, [10] * 100)))


def outlive():
    while True:
        work(1)
        time.sleep(0.001)


threading.Thread(target=outlive, daemon=True).start()
threads = [threading.Thread(target=work, args=(10,)) for _ in range(8)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
process_state.show(threads=2)
