"""settrace, setprofile and the frames that they see, along with the frame hook."""

import sys
import threading

events = []


def called(n):
    return sum(i for i in range(n))


def tracer(frame, event, argument):
    if frame.f_code.co_name in ("called", "<genexpr>"):
        events.append((event, frame.f_code.co_name, frame.f_lineno))
    return tracer


def profiler(frame, event, argument):
    if frame.f_code.co_name in ("called", "<genexpr>"):
        events.append((event, frame.f_code.co_name))


for install in (sys.settrace, sys.setprofile, threading.settrace, threading.setprofile):
    hook = profiler if "profile" in install.__name__ else tracer
    install(hook)
    called(3)
    thread = threading.Thread(target=called, args=(2,))
    thread.start()
    thread.join()
    install(None)

if hasattr(sys, "monitoring"):
    sys.monitoring.use_tool_id(3, "test")
    for name in ("PY_START", "PY_RETURN", "LINE", "PY_YIELD"):
        event = getattr(sys.monitoring.events, name)
        sys.monitoring.register_callback(
            3, event, lambda code, *rest, name=name: events.append((name, code.co_name))
        )
        sys.monitoring.set_local_events(3, called.__code__, event)
        called(3)
    sys.monitoring.free_tool_id(3)

for event in events:
    print(*event)
