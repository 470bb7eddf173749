"""Trying again: how long to wait before a request is sent once more, and when to stop. The same rules as Go's ``Do``."""

from __future__ import annotations

import random
from dataclasses import dataclass
from email.utils import parsedate_to_datetime
from datetime import datetime, timezone
from typing import Any, Callable, Dict, Mapping, Optional, Tuple, Type

from ._errors import SluiceError
from ._types import Body, Headers, header_items

MAX_HINT = 24 * 3600.0
WINDOWS: Dict[str, Tuple[float, float]] = {"p0": (0.5, 5.0), "p1": (2.0, 30.0), "p2": (5.0, 60.0)}

#: Verdicts after which sending again can help.
AGAIN = frozenset(("throttled", "overloaded", "quota gone", "error"))


@dataclass(frozen=True)
class Decision:
    """What to do after a failure: wait so many seconds, or give up. ``reason`` is backoff, hint, priority, queue, attempts
    or deadline."""

    wait: float
    give: bool
    reason: str


@dataclass(frozen=True)
class Retry:
    """How patient a caller is. ``attempts`` is how often a request is sent at most, the first send included; ``deadline`` how
    many seconds all of it may take until the last send starts. ``base`` and ``cap`` shape full jitter. ``windows`` are the
    waits of callers that say their class, in seconds; ``{}`` means full jitter for everyone. ``on`` lists exceptions after
    which a request is sent again; without it every exception of the request is final."""

    attempts: int = 6
    deadline: float = 600.0
    base: float = 1.0
    cap: float = 30.0
    windows: Optional[Mapping[str, Tuple[float, float]]] = None
    on: Tuple[Type[BaseException], ...] = ()

    def next(
        self,
        sent: int,
        elapsed: float = 0.0,
        *,
        cls: Optional[str] = None,
        hint: Optional[float] = None,
        held: bool = False,
        draw: Callable[[], float] = random.random,
    ) -> Decision:
        """What follows a failed send: ``sent`` sends so far, ``elapsed`` seconds since before the first."""
        left = max(0.0, self.deadline - max(0.0, elapsed))
        if sent >= self.attempts:
            return Decision(0.0, True, "attempts")
        low, high, reason = self._span(max(0, sent - 1), cls, hint, held)
        wait = low if high <= low else min(high, low + draw() * (high - low))
        if wait >= left:
            return Decision(wait, True, "deadline")
        return Decision(wait, False, reason)

    def _span(self, n: int, cls: Optional[str], hint: Optional[float], held: bool) -> Tuple[float, float, str]:
        if held:
            return 0.0, 0.0, "queue"
        if hint is not None:
            at = min(max(0.0, hint), MAX_HINT)
            return at, at + 1.0, "hint"
        window = (WINDOWS if self.windows is None else self.windows).get(cls) if cls else None
        if window is not None:
            low = min(max(0.0, window[0]), max(0.0, window[1]))
            return low, min(max(0.0, window[1]), low * 2.0 ** min(n + 1, 64)), "priority"
        return 0.0, min(self.cap, self.base * 2.0 ** min(n, 64)), "backoff"


class GaveUp(SluiceError):
    """A request was not answered well, and is not sent again. ``reason`` is attempts, deadline or billing, ``sends`` how often
    it was sent, ``response`` the last response, None if there was none."""

    def __init__(self, resource: str, reason: str, sends: int, response: Any) -> None:
        words = {
            "attempts": "it was the last attempt",
            "deadline": "the next could not start before the deadline",
            "billing": "the provider refuses for billing reasons",
        }
        super().__init__(
            f"{resource}: gave up after {sends} {'send' if sends == 1 else 'sends'}: {words[reason]}",
            hint="settle the account" if reason == "billing" else "see why the provider refuses, or raise the walls of Retry",
        )
        self.reason = reason
        self.sends = sends
        self.response = response


@dataclass(frozen=True)
class Answered:
    """What a response says, for the gate."""

    status: int
    headers: Optional[Headers]
    body: Optional[Body] = None


def read(response: Any) -> Answered:
    """Reads a response of httpx, requests, urllib, or anything with a status and headers."""
    if isinstance(response, Answered):
        return response
    status = getattr(response, "status_code", None) or getattr(response, "status", None)
    if not isinstance(status, int):
        raise TypeError("the request must return a response with a status and headers, or sluice.Answered")
    body = None
    if status >= 400 and getattr(response, "is_stream_consumed", True):  # a stream of httpx is the caller's to read
        body = getattr(response, "content", None)
    return Answered(status, getattr(response, "headers", None), body if isinstance(body, (bytes, str)) else None)


def hint_of(headers: Optional[Headers], now: Callable[[], datetime] = lambda: datetime.now(timezone.utc)) -> Optional[float]:
    """How many seconds a response asks to wait, None if it does not say."""
    found: Dict[str, str] = {}
    for name, value in header_items(headers):
        found[name.lower()] = value.strip()
    for name, unit in (("retry-after-ms", 0.001), ("retry-after", 1.0)):
        text = found.get(name, "")
        if text and not text.strip("0123456789.") and text.count(".") <= 1 and text != ".":
            seconds = float(text) * unit
            return min(seconds, MAX_HINT) if seconds <= 31 * 24 * 3600 else None
    if "retry-after" in found:
        try:
            at = parsedate_to_datetime(found["retry-after"])
            since = parsedate_to_datetime(found["date"]) if "date" in found else now()
            seconds = (at - since).total_seconds()
        except (TypeError, ValueError):
            return None
        return min(max(0.0, seconds), MAX_HINT) if -24 * 3600 <= seconds <= 31 * 24 * 3600 else None
    return None


class Trial:
    """One request that may be sent several times: what Client.do and AsyncClient.do have in common."""

    def __init__(self, resource: str, policy: Retry, cls: Optional[str], clock: Callable[[], float]) -> None:
        self.resource, self.policy, self.cls, self.clock = resource, policy, cls, clock
        self.start = clock()
        self.sends = 0
        self.last(None, None, "", None)

    def last(self, response: Any, failed: Optional[BaseException], verdict: str, answered: Optional[Answered]) -> None:
        """Notes what came of the last send, for a dead letter."""
        self.response, self.failed, self.verdict = response, failed, verdict
        self.status = answered.status if answered is not None else 0

    def wait(self) -> float:
        """How many seconds the next ticket may be waited for."""
        return min(max(self.policy.deadline - (self.clock() - self.start), 0.001), 600.0)

    def again(self, verdict: str, held: bool, answered: Optional[Answered], response: Any) -> Optional[float]:
        """How many seconds to wait before the next send, None if the response is the result."""
        if verdict == "billing stop":
            raise GaveUp(self.resource, "billing", self.sends, response)
        if verdict not in AGAIN:
            return None
        hint = hint_of(answered.headers) if answered is not None else None
        d = self.policy.next(self.sends, self.clock() - self.start, cls=self.cls, hint=hint, held=held)
        if d.give:
            raise GaveUp(self.resource, d.reason, self.sends, response)
        return d.wait
