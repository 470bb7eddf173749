import threading
import unittest
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime, timezone

import sluice

from .common import Case, env


class Tickets(Case):
    def test_grant_and_close(self) -> None:
        t = self.client.acquire("wide", agent="ann", cls="p1", user="me", tool="t", model="m", key="0123abcd", units={"requests": 1}, ttl=60)
        self.assertEqual((t.resource, t.agent, t.cls, t.ended), ("wide", "ann", "p1", False))
        self.assertEqual([(l.name, l.kind, l.limit) for l in t.limits], [("inflight", "concurrency", 1000)])
        said = t.answer(200, {"X-RateLimit-Remaining": "5", "Set-Cookie": "secret"})
        self.assertEqual((said.verdict, said.held), ("ok", False))
        t.close({"requests": 1})
        t.close()
        t.cancel()
        self.assertTrue(t.ended)

    def test_a_body_explains_a_refusal(self) -> None:
        text = '{"message": "You have exceeded a secondary rate limit"}'
        with self.client.ticket("hub") as t:
            self.assertFalse(t.answer(403, {}).held)
        for body in (text, text.encode(), bytearray(text.encode()), text + "x" * 1_000_000):
            with self.client.ticket("hub") as t:
                said = t.answer(403, {}, body)
                self.assertEqual((said.verdict, said.held), ("throttled", True))
            self.client.resume("hub")
        self.assertEqual(self.client.observe("hub", 403, body=text), "throttled")
        self.client.resume("hub")

    def test_wait_until_it_is_free(self) -> None:
        first = self.client.acquire("place")
        with ThreadPoolExecutor(1) as pool:
            second = pool.submit(self.client.acquire, "place", agent="other", wait=60)
            self.waiting("place")
            why = self.client.why("place", agent="other")[0]
            self.assertEqual((why["agent"], why["limit"]), ("other", "inflight"))
            with self.assertRaises(sluice.RefusedNow) as caught:
                self.client.acquire("place", wait=0)
            self.assertEqual(caught.exception.status, 429)
            self.assertTrue(caught.exception.why, caught.exception)
            first.close()
            got = second.result(60)
        self.assertGreater(got.waited, 0)
        got.renew(wait=10)
        self.assertEqual((got.ended, self.resource("place")["in_flight"]), (False, 1))
        got.cancel()
        self.assertEqual(self.resource("place")["in_flight"], 0)

    def test_usage_is_priced(self) -> None:
        for model, unpriced in (("claude-opus-4-5", False), ("nobody-knows", True)):
            agent = "payer-" + model
            self.client.acquire("models", agent=agent, model=model).close({"input_tokens": 100_000, "output_tokens": 50_000})
            spent = next(b for b in self.client.status()["budgets"] if b["who"] == agent)
            self.assertGreater(spent["used_usd"], 0.1)
            self.assertEqual(spent["unpriced_usd"], spent["used_usd"] if unpriced else 0)
            if not unpriced:
                self.assertAlmostEqual(spent["used_usd"], 0.1 * 5 + 0.05 * 25)  # opus 4.5: 5 and 25 dollars a million

    def test_usage_stated_only_at_the_end_is_charged(self) -> None:
        self.client.acquire("wide", agent="late", model="claude-opus-4-5").close({"input_tokens": 100_000})
        self.client.acquire("wide", agent="late").close({"usd": 0.02})
        spent = next(b for b in self.client.status()["budgets"] if b["who"] == "late")
        self.assertAlmostEqual(spent["used_usd"], 0.1 * 5 + 0.02)

    def test_stated_dollars_are_dollars(self) -> None:
        self.client.acquire("models", agent="dollars", units={"usd": 0.5}).close({"usd": 0.02})
        spent = next(b for b in self.client.status()["budgets"] if b["who"] == "dollars")
        self.assertAlmostEqual(spent["used_usd"], 0.02)

    def test_refused_now_tells_when(self) -> None:
        for _ in range(2):
            self.client.acquire("hourly").close()
        for wait in (0, 0.05):
            with self.assertRaises(sluice.RefusedNow) as caught:
                self.client.acquire("hourly", wait=wait)
            e = caught.exception
            self.assertEqual((e.status, e.limit), (429, "hour"))
            assert e.retry_after is not None and e.retry_at is not None
            self.assertGreater(e.retry_after, 60)
            self.assertGreater(e.retry_at, datetime.now(timezone.utc))

    def test_refused_for_good(self) -> None:
        with self.assertRaises(sluice.Refused) as caught:
            self.client.acquire("hourly", units={"requests": 99})
        self.assertEqual((caught.exception.status, caught.exception.retry_after), (403, None))

    def test_nonsense(self) -> None:
        with self.assertRaises(sluice.NotFound) as caught:
            self.client.acquire("nowhere")
        self.assertIn("nowhere", str(caught.exception))
        self.assertIn("wide", caught.exception.hint)
        with self.assertRaises(sluice.Invalid):
            self.client.acquire("wide", cls="p9")
        with self.assertRaises(sluice.Invalid):
            self.client.acquire("wide", wait=3600)
        with self.assertRaises(sluice.NotFound):
            self.client.route("cooking")
        with self.assertRaisesRegex(ValueError, r"^wait must be 0 to 10000000 seconds, got -1$"):
            self.client.acquire("wide", wait=-1)

    def test_many_threads(self) -> None:
        lock = threading.Lock()
        now, most, done = [0], [0], [0]

        def work(i: int) -> None:
            with self.client.ticket("crowd", agent=f"agent-{i % 5}", wait=120) as t:
                with lock:
                    now[0] += 1
                    most[0] = max(most[0], now[0])
                t.answer(200)
                with lock:
                    now[0] -= 1
                    done[0] += 1

        with ThreadPoolExecutor(24) as pool:
            list(pool.map(work, range(120)))
        self.assertEqual(done[0], 120)
        self.assertLessEqual(most[0], 3)
        self.assertEqual(self.resource("crowd")["in_flight"], 0)


class Block(Case):
    """How a block ends its ticket. What was given back is not counted as used."""

    def used(self) -> int:
        r = self.resource("rule")
        self.assertEqual(r["in_flight"], 0)
        return int(next(l["used"] for l in r["limits"] if l["name"] == "hour"))

    def test_rule(self) -> None:
        class Oops(Exception):
            pass

        used = self.used()
        with self.client.ticket("rule") as t:
            t.answer(200, [("X-Ratelimit-Remaining", "5")])
            t.used({"requests": 1})
        self.assertTrue(t.ended)
        self.assertEqual(self.used(), used + 1)
        with self.client.ticket("rule"):
            pass  # it may have been sent
        self.assertEqual(self.used(), used + 2)
        with self.assertRaises(Oops):
            with self.client.ticket("rule") as t:
                raise Oops
        self.assertTrue(t.ended)
        self.assertEqual(self.used(), used + 3)
        with self.client.ticket("rule") as t:
            t.cancel()
        self.assertEqual(self.used(), used + 3)
        with self.assertRaises(Oops):
            with self.client.ticket("rule", explicit=True):
                raise Oops
        self.assertEqual(self.used(), used + 3)
        with self.assertRaises(Oops):
            with self.client.ticket("rule", explicit=True) as t:
                t.sending()
                raise Oops
        self.assertEqual(self.used(), used + 4)

    def test_the_end_does_not_hide_the_work(self) -> None:
        c = self.made()
        with self.assertLogs("sluice", "WARNING"):
            with c.ticket("wide") as t:
                c.close()
        self.assertFalse(t.ended)
        with self.assertRaises(sluice.SluiceError):
            t.close()


class Tokens(Case):
    def test_bad_token(self) -> None:
        for token in ("", "wrong"):
            with self.assertRaises(sluice.Unauthorized) as caught:
                self.made(token=token).status()
            self.assertEqual(caught.exception.status, 401)
            self.assertNotIn("wrong", str(caught.exception))
        with self.assertRaises(ValueError):
            self.made(token="a\r\nb")

    def test_held_to_its_agent(self) -> None:
        bob = self.made(token=env("TEST_LOW_TOKEN"), agent="bob")
        with bob.ticket("wide") as t:
            self.assertEqual((t.agent, t.cls), ("bob", "p2"))
        for refused in (
            lambda: bob.acquire("wide", agent="eve"),
            lambda: bob.acquire("wide", cls="p0"),
            lambda: bob.acquire("wide", emergency=True),
            lambda: bob.pause("wide", 1),
        ):
            with self.assertRaises(sluice.Refused) as caught:
                refused()
            self.assertEqual(caught.exception.status, 403)


if __name__ == "__main__":
    unittest.main()
