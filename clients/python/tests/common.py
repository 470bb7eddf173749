import os
import threading
import time
import unittest
from typing import Any, Callable

from sluice import Client


class Case(unittest.TestCase):
    """A test with a client of the daemon that wants tokens."""

    def setUp(self) -> None:
        self.client = self.made()

    def made(self, *args: Any, **kwargs: Any) -> Client:
        c = Client(*args, **kwargs)
        self.addCleanup(c.close)
        return c

    def until(self, what: str, come: Callable[[], Any]) -> Any:
        """Waits for something that comes by itself, soon."""
        end = time.monotonic() + 30
        pause = threading.Event()
        while True:
            got = come()
            if got:
                return got
            if time.monotonic() > end:
                self.fail("in vain: " + what)
            pause.wait(0.02)

    def resource(self, name: str) -> Any:
        return next(r for r in self.client.status()["resources"] if r["name"] == name)

    def agents(self) -> Any:
        return {a["name"]: a for a in self.client.status()["agents"]}

    def waiting(self, name: str, n: int = 1) -> None:
        self.until(f"{n} wait for {name}", lambda: len(self.client.why(name)) == n)


def env(name: str) -> str:
    return os.environ[name]
