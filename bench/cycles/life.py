# SPDX-License-Identifier: MIT
"""life.py - for cycles.py: threads of Python that check what they get, until standard input ends."""
import hashlib
import queue
import socket
import subprocess
import sys
import threading
import time

over = False


def checked(what):
    def run():
        try:
            while not over:
                what()
        except Exception as e:  # whatever it is: nobody else would say so
            print(f"{what.__name__}: {e!r}", flush=True)

    return threading.Thread(target=run)


def need(condition, text):
    if not condition:
        raise RuntimeError(text)


def sleeps():
    start = time.monotonic()
    time.sleep(0.02)
    took = time.monotonic() - start
    need(0.0199 <= took < 5, f"{took} s instead of 0.02")


def waits():
    start = time.monotonic()
    need(not threading.Event().wait(0.03), "nobody has set it")
    need(0.025 <= time.monotonic() - start < 5, "it waited for another time")


def computes():
    need(sum(i * i for i in range(3000)) == 8995500500, "a wrong sum")
    need(hashlib.sha256(b"kron" * 1000).hexdigest()[:8] == "5464e100", "a wrong sum of bytes")


def throws():
    try:
        int("x")
    except ValueError:
        return
    need(False, "nothing was thrown")


def executes():
    need(subprocess.run(["/bin/echo", "yes"], capture_output=True, timeout=60).stdout == b"yes\n", "it said something else")
    time.sleep(0.05)


a, b = socket.socketpair()
numbers, back = queue.Queue(), queue.Queue()


def echoes():
    data = b.recv(10)
    if data:
        b.sendall(data[::-1])


def talks():
    a.sendall(b"0123456789")
    need(a.recv(10) == b"9876543210", "another answer")
    time.sleep(0.001)


def takes():
    n = numbers.get()
    back.put(n + 1 if n is not None else None)


def gives():
    numbers.put(41)
    need(back.get() == 42, "another number")
    time.sleep(0.001)


threads = [checked(f) for f in (sleeps, waits, computes, throws, executes, talks, gives)]
servers = [checked(f) for f in (echoes, takes)]
for t in threads + servers:
    t.start()
print("ready", flush=True)
sys.stdin.read()
over = True
for t in threads:
    t.join()
numbers.put(None)
a.close()
