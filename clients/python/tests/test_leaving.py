import asyncio
import os
import random
import signal
import subprocess
import sys
import tempfile
import threading
from typing import Any, Callable, Dict, List, Tuple

from sluice import Gate, Unavailable
from sluice._awire import AsyncWire

from .common import Case, env
from .test_gate import AsyncPlain, Plain, Provider, outline

OK = (200, {"Content-Type": "application/json"}, b"{}")
REFUSED = (429, {"Content-Type": "application/json", "Retry-After": "1"}, b"{}")


class Leaving(Case):
    """Clients, and daemons, that end in the middle."""

    def setUp(self) -> None:
        super().setUp()
        self.provider = Provider(self)
        self.gate = Gate("leavers", client=self.client, agent="leaver")
        self.addCleanup(self.gate.close)

    def level(self) -> Dict[str, int]:
        return {limit["name"]: limit["used"] for limit in self.resource("leavers")["limits"]}

    def lost(self, wire: Any, path: str, why: Callable[[], BaseException]) -> List[str]:
        """Loses one reply of the daemon: the caller is interrupted when it has come."""
        real, calls = wire.call, []

        def told(method: str, at: str) -> bool:
            calls.append(method + " " + at.rpartition("/")[2])
            return at.endswith(path) and calls.count(calls[-1]) == 1

        def here(method: str, at: str, *args: Any, **kwargs: Any) -> Any:
            loses, got = told(method, at), real(method, at, *args, **kwargs)
            if loses:
                raise why()
            return got

        async def abroad(asked: AsyncWire, method: str, at: str, *args: Any, **kwargs: Any) -> Any:
            loses, got = told(method, at), await real(asked, method, at, *args, **kwargs)
            if loses:
                raise why()
            return got

        setattr(wire, "call", abroad if wire is AsyncWire else here)
        self.addCleanup(setattr, wire, "call", real)
        return calls

    def free(self, used: int) -> None:
        self.until("the place is free", lambda: self.level()["inflight"] == 0)
        self.assertEqual(self.level()["hour"], used)

    def test_interrupted_as_the_turn_comes(self) -> None:
        before = self.level()["hour"]
        calls = self.lost(self.client._wire, "/exchanges", KeyboardInterrupt)
        with self.assertRaises(KeyboardInterrupt):
            self.gate.send(outline(self.provider.url), Plain(self.provider.url))
        self.assertTrue(calls[-1].startswith("DELETE "), calls)
        self.free(before)
        self.assertEqual(self.provider.got, [])

    def test_cancelled_as_the_turn_comes(self) -> None:
        before = self.level()["hour"]
        self.lost(AsyncWire, "/exchanges", asyncio.CancelledError)
        with self.assertRaises(asyncio.CancelledError):
            asyncio.run(self.gate.asend(outline(self.provider.url), AsyncPlain(self.provider.url)))
        self.free(before)
        self.assertEqual(self.provider.got, [])

    def test_interrupted_as_the_next_turn_comes(self) -> None:
        for asynchronous in (False, True):
            before = self.level()["hour"]
            self.provider.responses = [REFUSED, OK]
            if asynchronous:
                self.lost(AsyncWire, "/answer", asyncio.CancelledError)
                with self.assertRaises(asyncio.CancelledError):
                    asyncio.run(self.gate.asend(outline(self.provider.url), AsyncPlain(self.provider.url)))
            else:
                self.lost(self.client._wire, "/answer", KeyboardInterrupt)
                with self.assertRaises(KeyboardInterrupt):
                    self.gate.send(outline(self.provider.url), Plain(self.provider.url))
            self.free(before + 1)

    def test_many_cancelled(self) -> None:
        random.seed(7)
        self.provider.responses = [OK] * 1000

        async def one() -> None:
            task = asyncio.ensure_future(self.gate.asend(outline(self.provider.url), AsyncPlain(self.provider.url)))
            await asyncio.sleep(random.random() * 0.3)
            task.cancel()
            await asyncio.wait([task])
            if not task.cancelled() and task.exception() is None:
                response, rest = task.result()
                response.close()
                if rest is not None:
                    await rest.aend("left")

        async def run() -> None:
            await asyncio.gather(*(one() for _ in range(150)))

        asyncio.run(run())
        self.until("no place is taken", lambda: self.level()["inflight"] == 0)
        self.waiting("leavers", 0)

    def test_killed_while_it_waits(self) -> None:
        script = f"from sluice import Gate; from tests.test_gate import *; Gate('leavers').send(outline({self.provider.url!r}), Plain({self.provider.url!r}))"
        with self.client.ticket("leavers"), self.client.ticket("leavers"):
            process = subprocess.Popen([sys.executable, "-c", script], stderr=subprocess.DEVNULL)
            self.waiting("leavers")
            process.send_signal(signal.SIGKILL)
            process.wait()
            self.waiting("leavers", 0)
        self.until("no place is taken", lambda: self.level()["inflight"] == 0)
        self.assertEqual(self.provider.got, [])

    def served(self, home: str) -> Tuple["subprocess.Popen[bytes]", str]:
        config = os.path.join(home, "sluice.yaml")
        with open(config, "w", encoding="utf-8") as f:
            f.write(f"store: file:{home}/state\nresources: {{leavers: {{limits: [{{name: inflight, concurrency: 2}}]}}}}\n")
        process = subprocess.Popen([env("TEST_SLUICE"), "serve", "--config", config, "--listen", f"unix:{home}/s", "--json"], stdout=subprocess.PIPE)
        self.addCleanup(process.wait)
        self.addCleanup(process.kill)
        assert process.stdout is not None
        self.addCleanup(process.stdout.close)
        process.stdout.readline()
        return process, f"unix:{home}/s"

    def test_the_daemon_is_killed(self) -> None:
        with tempfile.TemporaryDirectory() as home:
            process, at = self.served(home)
            client = self.made(at, token="")
            gate = Gate("leavers", client=client)
            self.provider.responses = [OK]
            killed = Plain(self.provider.url)
            send = killed.send

            def kill() -> Any:
                process.kill()
                process.wait()
                return send()

            killed.send = kill  # type: ignore[method-assign]
            with self.assertLogs("sluice", "WARNING"):
                response, rest = gate.send(outline(self.provider.url), killed)
            self.assertEqual((response.status, response.body, rest), (200, b"{}", None))
            with self.assertRaises(Unavailable):
                gate.send(outline(self.provider.url), Plain(self.provider.url))
            with self.assertRaises(Unavailable):
                asyncio.run(gate.asend(outline(self.provider.url), AsyncPlain(self.provider.url)))

    def test_the_daemon_is_killed_while_requests_wait(self) -> None:
        with tempfile.TemporaryDirectory() as home:
            process, at = self.served(home)
            client = self.made(at, token="")
            gate = Gate("leavers", client=client)
            held = [client.acquire("leavers") for _ in range(2)]
            got: List[BaseException] = []

            def wait() -> None:
                try:
                    gate.send(outline(self.provider.url), Plain(self.provider.url))
                except BaseException as e:
                    got.append(e)

            threads = [threading.Thread(target=wait) for _ in range(3)]
            for thread in threads:
                thread.start()
            self.until("they wait", lambda: len(client.why("leavers")) == 3)
            process.kill()
            for thread in threads:
                thread.join(30)
            self.assertEqual([type(e) for e in got], [Unavailable] * 3)
            self.assertEqual((len(held), self.provider.got), (2, []))
