"""
A program under debugpy, and the client that debugs it by the Debug Adapter Protocol: a breakpoint, the stack, a variable, a
step, an evaluation. Both are traced, the adapter too. `run`: the program.
"""

import json
import os
import subprocess
import sys


def leaf(n):
    return n * 2


def work():
    total = 0
    for i in range(5):
        total += leaf(i)  # BREAKPOINT
        total += 1
    return total


if sys.argv[1:] == ["run"]:
    print(work(), flush=True)
    sys.exit(3)

LINE = next(i for i, line in enumerate(open(__file__), 1) if line.endswith("# BREAKPOINT\n"))


class Client:
    def __init__(self):
        command = [sys.executable, "-m", "debugpy.adapter"]
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        self.sequence = 0
        self.events = []

    def read(self):
        length = 0
        while line := self.process.stdout.readline().strip():
            if line.lower().startswith(b"content-length:"):
                length = int(line.split(b":")[1])
        return json.loads(self.process.stdout.read(length)) if length else None

    def send(self, command, **arguments):
        self.sequence += 1
        message = {"seq": self.sequence, "type": "request", "command": command, "arguments": arguments}
        data = json.dumps(message).encode()
        self.process.stdin.write(b"Content-Length: %d\r\n\r\n%s" % (len(data), data))
        self.process.stdin.flush()
        return self.sequence

    def answer(self, sequence):
        while message := self.read():
            if message["type"] == "response" and message["request_seq"] == sequence:
                assert message["success"], message
                return message.get("body")
            self.events.append(message)

    def ask(self, command, **arguments):
        return self.answer(self.send(command, **arguments))

    def wait_for(self, event):
        while True:
            for i, message in enumerate(self.events):
                if message.get("event") == event:
                    return self.events.pop(i).get("body")
            message = self.read()
            if message is None:
                return None
            self.events.append(message)


client = Client()
client.ask("initialize", adapterID="test", linesStartAt1=True, pathFormat="path")
launch = client.send(
    "launch",
    program=os.path.abspath(__file__),
    args=["run"],
    console="internalConsole",
    redirectOutput=True,
    justMyCode=True,
)
client.wait_for("initialized")
source = {"path": os.path.abspath(__file__)}
points = client.ask("setBreakpoints", source=source, breakpoints=[{"line": LINE, "condition": "i == 2"}])
print([point["verified"] for point in points["breakpoints"]])
client.ask("configurationDone")
client.answer(launch)
stopped = client.wait_for("stopped")
print(stopped["reason"])
thread = stopped["threadId"]
frames = client.ask("stackTrace", threadId=thread)["stackFrames"]
print([(frame["name"], frame["line"] - LINE) for frame in frames])
print(client.ask("evaluate", expression="(i, total, leaf(7))", frameId=frames[0]["id"])["result"])
client.ask("next", threadId=thread)
print(client.wait_for("stopped")["reason"])
frames = client.ask("stackTrace", threadId=thread)["stackFrames"]
print(frames[0]["line"] - LINE)
client.ask("continue", threadId=thread)
exited = client.wait_for("exited")
print(exited["exitCode"])
output = [message["body"] for message in client.events if message.get("event") == "output"]
print("".join(part["output"] for part in output if part["category"] in ("stdout", "stderr")), end="")
client.wait_for("terminated")
client.process.kill()
