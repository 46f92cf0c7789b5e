"""Holds marked secrets wherever a program has data of its own: no trace may have one of them."""

import os
import sys
import threading
import warnings

import torch

MARK = os.environ["PRIVACY_TEST"]  # "secret-in-the-environment-..."
NUMBER = MARK.rsplit("-", 1)[1]


def secret(where):
    return f"secret-{where}-{NUMBER}"


def function(argument, *arguments, keyword=None, **keywords):
    local = secret("local")
    table = {secret("key"): secret("value"), argument: arguments}
    return len(local) + len(table) + len(keyword) + len(keywords)


class Holder:
    def __init__(self):
        self.attribute = secret("attribute")
        setattr(self, secret("name-of-an-attribute"), 1)

    def __repr__(self):
        return secret("repr")


def raises():
    raise ValueError(secret("exception"))


def generator():
    sent = yield secret("yielded")
    yield sent


def main():
    assert sys.argv[1].startswith("secret-argument")
    function(
        secret("positional"),
        secret("star"),
        keyword=secret("keyword"),
        other=secret("keywords"),
    )
    holder = Holder()
    repr(holder)
    with open("file", "w+") as file:
        file.write(secret("file"))
        file.seek(0)
        assert len(file.read()) > 6
    os.environ["PRIVACY_OTHER"] = secret("set-later")
    with warnings.catch_warnings(record=True):
        warnings.warn(secret("warning"), stacklevel=1)
    for _ in range(200):
        try:
            raises()
        except ValueError:
            pass
        values = generator()
        next(values)
        values.send(secret("sent"))
    thread = threading.Thread(
        target=function, args=(secret("thread"),), kwargs={"keyword": secret("in-it")}
    )
    thread.start()
    thread.join()
    device = "cuda" if torch.cuda.is_available() else "cpu"
    data = torch.frombuffer(bytearray(secret("tensor").encode()), dtype=torch.uint8)
    for _ in range(20):
        moved = data.to(device)
        with torch.profiler.record_function("a range", secret("range-argument")):
            float((moved + 1).sum())
        data.new_tensor(list(secret("list").encode())).to(device)
    if device == "cuda":
        torch.cuda.synchronize()
    print("done")


main()
