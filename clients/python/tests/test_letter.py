import asyncio
import json
import unittest
from typing import Any, Dict, List

from sluice import Answered, Client, GaveUp, Letter, Retry
from sluice._letter import letter_of, plain_letter
from sluice.aio import AsyncClient

from .common import Case

KEY = "the-canary-of-a-key"


class Plain(unittest.TestCase):
    def test_secrets_stay_here(self) -> None:
        got = plain_letter(Letter("post", "https://h/v1/x?a=1&key=" + KEY, {"Authorization": "Bearer " + KEY, "Accept": "a"}, "canary"))
        want = {"method": "POST", "path": "/v1/x?a=1", "headers": {"Accept": "a"}, "left_out": ["Authorization", "?key"], "body": "canary"}
        self.assertEqual(got, want)
        for body in (None, "it holds " + KEY, "x" * 1_000_000):
            got = plain_letter(Letter("GET", "https://h", {"X-Api-Key": KEY}, body))
            self.assertEqual((got["path"], got.get("body"), got["body_lost"]), ("/", None, True))
            self.assertNotIn(KEY, json.dumps(got))
        self.assertEqual(plain_letter(Letter("GET", "/", None, b"\xff"))["body"], {"base64": "/w=="})

    def test_headers_in_every_form(self) -> None:
        for headers in (
            {"Authorization": ["Bearer " + KEY, "other"], "Accept": ["a", "b"]},
            [("Authorization", "Bearer " + KEY), ("Accept", "a"), ("Accept", "b")],
            [(b"Authorization", b"Bearer " + KEY.encode()), (b"Accept", b"a"), (b"Accept", b"b")],
        ):
            got = plain_letter(Letter("GET", "/", headers, "it holds " + KEY))
            self.assertEqual((got["headers"], got.get("body"), got["left_out"]), ({"Accept": "a, b"}, None, ["Authorization"]))

    def test_requests_of_clients(self) -> None:
        class Request:
            method, url, headers, body = "POST", "https://h/x", {"Accept": "a"}, b"canary"

        class Response:
            request = Request()

        self.assertEqual(letter_of(True, Response(), None), Letter("POST", "https://h/x", {"Accept": "a"}, b"canary"))
        self.assertEqual(letter_of(True, None, Response()), Letter("POST", "https://h/x", {"Accept": "a"}, b"canary"))
        self.assertIsNone(letter_of(True, None, None))
        self.assertIsNone(letter_of(False, Response(), None))


class Kept(Case):
    """Against a real daemon, which test/clients looks at afterwards."""

    letter = Letter("POST", "http://127.0.0.1/v1/x?a=1", {"Authorization": "Bearer " + KEY, "Content-Type": "text/plain"}, "canary-of-a-body")
    policy = Retry(attempts=2, base=0.001, cap=0.001)

    def test_what_is_given_up_is_kept(self) -> None:
        with self.assertRaises(GaveUp):
            self.client.do("letters", lambda _: Answered(500, {}), policy=self.policy, letter=self.letter, agent="python")

        async def again() -> None:
            async def send(_: Any) -> Answered:
                return Answered(500, {})

            async with AsyncClient() as client:
                with self.assertRaises(GaveUp):
                    await client.do("letters", send, policy=self.policy, letter=self.letter, agent="python-aio")

        asyncio.run(again())

    def test_off(self) -> None:
        with self.assertLogs("sluice", "WARNING") as told, self.assertRaises(GaveUp):
            self.client.do("wide", lambda _: Answered(500, {}), policy=self.policy, letter=self.letter)
        self.assertIn("keeps no dead letters", told.output[0])

    def test_not_asked_for(self) -> None:
        sent: List[Dict[str, Any]] = []

        class Listening(Client):
            def _call(self, method: str, path: str, body: Any = None, **how: Any) -> Any:
                sent.append({"path": path})
                return super()._call(method, path, body, **how)

        client = Listening()
        self.addCleanup(client.close)
        with self.assertRaises(GaveUp):
            client.do("letters", lambda _: Answered(500, {}), policy=self.policy)
        self.assertNotIn({"path": "/v1/dead-letters"}, sent)
