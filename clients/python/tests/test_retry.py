import asyncio
import json
import pathlib
import unittest
from datetime import datetime, timezone
from typing import Any, Dict, List

from sluice import Answered, Client, GaveUp, Retry
from sluice._retry import hint_of
from sluice._types import Verdict
from sluice.aio import AsyncClient

from .common import Case

TABLE: Dict[str, Any] = json.loads((pathlib.Path(__file__).parents[3] / "retry" / "testdata" / "cases.json").read_text())


def policy_of(p: Dict[str, Any]) -> Retry:
    """A policy of the table, whose times are milliseconds."""
    how = {name: p[name + "_ms"] / 1000 for name in ("deadline", "base", "cap") if name + "_ms" in p}
    if "windows" in p:
        how["windows"] = {cls: (lo / 1000, hi / 1000) for cls, (lo, hi) in p["windows"].items()}
    if "attempts" in p:
        how["attempts"] = p["attempts"]
    return Retry(**how)


class FakeTicket:
    def __init__(self, verdict: str) -> None:
        self.verdict = verdict
        self.ticket = self

    def answer(self, status: int, headers: Any, body: Any) -> Verdict:
        return Verdict(self.verdict, False)

    def __enter__(self) -> "FakeTicket":
        return self

    def __exit__(self, *_: Any) -> None:
        pass


class Table(unittest.TestCase):
    """The table that Go's Do and the TypeScript client read, too."""

    def test_next(self) -> None:
        self.assertGreater(len(TABLE["next"]), 20)
        for c in TABLE["next"]:
            with self.subTest(c["name"]):
                f, want = c["failure"], c["want"]
                hint = f["hint_ms"] / 1000 if "hint_ms" in f else None
                d = policy_of(c["policy"]).next(
                    f["sent"], f.get("elapsed_ms", 0) / 1000, cls=f.get("class"), hint=hint, held=f.get("held", False), draw=lambda: c["random"]
                )
                self.assertEqual((d.give, d.reason), (want.get("give", False), want["reason"]))
                if not d.give:
                    self.assertAlmostEqual(d.wait * 1000, want["wait_ms"], places=3)

    def test_do(self) -> None:
        for c in TABLE["do"]:
            with self.subTest(c["name"]):
                self.check(c, self.sync(c))
                self.check(c, asyncio.run(self.asynchronous(c)))

    def check(self, c: Dict[str, Any], got: Dict[str, Any]) -> None:
        self.assertEqual(got, c["want"])

    def sync(self, c: Dict[str, Any]) -> Dict[str, Any]:
        sends = 0

        class Fake(Client):
            _sleep = staticmethod(lambda _: None)

            def acquire(self, resource: str, **how: Any) -> Any:
                assert how["retry"] == (sends > 0), how
                return FakeTicket(c["verdicts"][min(sends, len(c["verdicts"]) - 1)])

        def send(_: Any) -> Answered:
            nonlocal sends
            sends += 1
            return Answered(200, {})

        client = Fake("http://127.0.0.1:1", token="")
        self.addCleanup(client.close)
        try:
            client.do("api", send, policy=policy_of(c["policy"]))
        except GaveUp as e:
            return {"sends": sends, "outcome": e.reason}
        return {"sends": sends, "outcome": "ok"}

    async def asynchronous(self, c: Dict[str, Any]) -> Dict[str, Any]:
        sends = 0

        async def nap(delay: float) -> None:
            pass

        class Fake(AsyncClient):
            _sleep = staticmethod(nap)

            async def acquire(self, resource: str, **how: Any) -> Any:
                t = FakeTicket(c["verdicts"][min(sends, len(c["verdicts"]) - 1)])

                async def answer(*_: Any) -> Verdict:
                    return Verdict(t.verdict, False)

                t.answer = answer  # type: ignore[assignment, method-assign]
                return t

        async def send(_: Any) -> Answered:
            nonlocal sends
            sends += 1
            return Answered(200, {})

        async with Fake("http://127.0.0.1:1", token="") as client:
            try:
                await client.do("api", send, policy=policy_of(c["policy"]))
            except GaveUp as e:
                return {"sends": sends, "outcome": e.reason}
        return {"sends": sends, "outcome": "ok"}


class Hints(unittest.TestCase):
    def test_hints(self) -> None:
        now = datetime(2026, 3, 4, 12, 0, 0, tzinfo=timezone.utc)
        cases: List[Any] = [
            ({}, None), (None, None), ({"Retry-After": "2.5"}, 2.5), ({"retry-after-ms": "250", "Retry-After": "9"}, 0.25), ({"Retry-After": "soon"}, None),
            ({"Retry-After": "-1"}, None), ({"Retry-After": "1e3"}, None), ({"Retry-After": "99999999"}, None), ({"Retry-After": "100000"}, 86400.0),
            ({"Retry-After": "Wed, 04 Mar 2026 12:01:30 GMT"}, 90.0), ({"Retry-After": "Wed, 04 Mar 2026 12:01:30 GMT", "Date": "Wed, 04 Mar 2026 12:01:00 GMT"}, 30.0),
            ({"Retry-After": "Fri, 31 Dec 9999 23:59:59 GMT"}, None),
        ]
        for headers, want in cases:
            self.assertEqual(hint_of(headers, lambda: now), want, headers)


class Gated(Case):
    """Against a real daemon."""

    def test_a_client_of_its_own(self) -> None:
        class Response:
            def __init__(self, status_code: int) -> None:
                self.status_code, self.content = status_code, b"{}"
                self.headers: Dict[str, str] = {}

        seen: List[str] = []

        def request(method: str, url: str) -> Response:
            seen.append(f"{method} {url}")
            return Response(500 if len(seen) == 1 else 200)

        call = self.client.gated("wide", request, policy=Retry(base=0.001, cap=0.001))
        self.assertEqual(call("GET", "/x").status_code, 200)
        self.assertEqual(seen, ["GET /x", "GET /x"])
        stuck = self.client.gated("wide", lambda: Response(500), policy=Retry(attempts=2, base=0.001, cap=0.001))
        self.assertEqual(stuck().status_code, 500)

    def test_exceptions(self) -> None:
        def broken(_: Any) -> Answered:
            raise ConnectionError("gone")

        with self.assertRaises(ConnectionError):
            self.client.do("wide", broken)
        with self.assertRaises(GaveUp) as caught:
            self.client.do("wide", broken, policy=Retry(attempts=2, base=0.001, on=(ConnectionError,)))
        self.assertEqual((caught.exception.reason, caught.exception.sends), ("attempts", 2))
        self.assertIsInstance(caught.exception.__cause__, ConnectionError)
