"""Permission to send one request."""

from __future__ import annotations

import logging
import threading
from types import TracebackType
from typing import TYPE_CHECKING, List, Mapping, Optional, Type
from urllib.parse import quote

from ._errors import Ended, NotFound, SluiceError
from ._types import Body, Headers, Json, Level, Verdict, plain_body, plain_headers

if TYPE_CHECKING:
    from ._client import Client

log = logging.getLogger("sluice")


class Ticket:
    """Permission to send one request. It must be ended: with ``close`` when the request is over, or with ``cancel`` when
    it was not sent. Ending it twice does no harm. A ticket that is not ended lapses after its ``ttl``.

    As a context manager it ends itself. A request may have been sent unless you say that it was not, so leaving the block,
    by an exception or not, closes the ticket, and its charge stays. To give it back, call ``cancel`` before the request is
    sent. With ``explicit=True`` it is the other way round: nothing was sent before ``sending`` or ``answer`` is called, and
    leaving the block before that gives the ticket back.
    """

    def __init__(self, client: "Client", granted: Json, explicit: bool = False) -> None:
        self._client = client
        self._lock = threading.Lock()
        self._ended = False
        self._sent = not explicit
        self._usage: Optional[Mapping[str, float]] = None
        self.id: str = granted["ticket"]
        self.resource: str = granted.get("resource", "")
        self.agent: str = granted.get("agent", "")
        self.cls: str = granted.get("class", "")
        #: Seconds that it was waited for.
        self.waited: float = granted.get("waited_ms", 0) / 1000
        #: What is left of the limits that it counts against.
        self.limits: List[Level] = [Level.of(d) for d in granted.get("limits") or []]

    def __repr__(self) -> str:
        return f"<Ticket {self.id}{' ended' if self._ended else ''}>"

    @property
    def ended(self) -> bool:
        """Whether it was closed or cancelled here."""
        return self._ended

    def sending(self) -> None:
        """Says that the request goes out now. It only matters with ``explicit=True``."""
        self._sent = True

    def answer(self, status: int, headers: Optional[Headers] = None, body: Optional[Body] = None) -> Verdict:
        """Tells the gate what the provider said. Call it as soon as the headers are there, before the body: all callers'
        turn depends on it. ``headers`` may be of any HTTP library; what may be secret is left out.

        Pass ``body`` for refusals (status 400 and above): some are explained only by their text, such as the 403 of a
        secondary rate limit. The gate reads its first 64 KiB, and neither stores, logs nor shows it."""
        self._sent = True
        said: Json = {"status": status, "headers": plain_headers(headers)}
        text = plain_body(body)
        if text is not None:
            said["body"] = text
        got = self._client._call("POST", self._path("/answer"), said)
        return Verdict(str(got.get("verdict", "")), bool(got.get("held", False)))

    def renew(self, wait: Optional[float] = None) -> None:
        """Makes an unsent ticket fresh: for one that was not used at once. It keeps its place, and may wait up to ``wait``
        seconds."""
        wait_ms, extra = self._client._waiting(wait)
        got = self._client._call("POST", self._path("/renew"), {"wait_ms": wait_ms}, extra=extra, again=False)
        self.id = got["ticket"]

    def used(self, usage: Mapping[str, float]) -> None:
        """Remembers what was really used, by unit, for when the block is left."""
        self._usage = dict(usage)

    def close(self, usage: Optional[Mapping[str, float]] = None) -> None:
        """Ends it: the request is over. ``usage`` is what it really used, by unit (``usd`` in dollars);
        what is not named keeps its estimate."""
        usage = self._usage if usage is None else usage
        self._end("POST", "/close", {"usage": dict(usage)} if usage else {})

    def cancel(self) -> None:
        """Gives it back unsent, with full refund."""
        self._end("DELETE", "", None)

    def _end(self, method: str, suffix: str, body: Optional[Json]) -> None:
        with self._lock:
            if self._ended:
                return
            self._client._call(method, self._path(suffix), body)
            self._ended = True  # not before: if it fails, it can be tried again

    def _path(self, suffix: str) -> str:
        return "/v1/tickets/" + quote(self.id, safe="") + suffix

    def __enter__(self) -> "Ticket":
        return self

    def __exit__(self, kind: Optional[Type[BaseException]], e: Optional[BaseException], tb: Optional[TracebackType]) -> None:
        try:
            if self._sent:
                self.close()
            else:
                self.cancel()
        except (NotFound, Ended):
            pass  # it has lapsed
        except SluiceError as problem:
            # What the block has done is worth more than this. The ticket lapses by itself.
            log.warning("ticket %s could not be ended: %s", self.id, problem)
