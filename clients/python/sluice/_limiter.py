"""Turns without requests: for frameworks that ask before a call and do not show the call itself."""

from __future__ import annotations

from typing import Any, Mapping, Optional

from ._client import Client
from ._errors import RefusedNow
from ._exchange import Call, Who
from ._gate import Gate
from ._ticket import Ticket
from ._types import Json

LONG = 600.0  # seconds of one call that waits; then it asks again


class Limiter:
    """Takes tickets of a resource. ``units`` is what a call takes, one request if it is not said; ``wait`` is how many seconds it may wait, None for as
    long as it takes; ``ttl`` is how many seconds a ticket lives that nobody ends."""

    def __init__(
        self,
        resource: str,
        *,
        agent: Optional[str] = None,
        cls: Optional[str] = None,
        user: Optional[str] = None,
        model: Optional[str] = None,
        units: Optional[Mapping[str, float]] = None,
        wait: Optional[float] = None,
        ttl: Optional[float] = None,
        client: Optional[Client] = None,
    ) -> None:
        self.gate = Gate(resource, agent=agent, cls=cls, user=user, client=client)
        self._model, self._units, self._wait, self._ttl = model, units, wait, ttl

    def _call(self, wait: float, model: Optional[str], units: Optional[Mapping[str, float]]) -> Call:
        who: Who = self.gate.who()
        body: Json = {**who.said(), "wait_ms": int(wait * 1000)}
        if model or self._model:
            body["model"] = model or self._model
        if units or self._units:
            body["units"] = dict(units or self._units or {})
        if self._ttl is not None:
            body["ttl_ms"] = int(self._ttl * 1000)
        return Call("POST", "/v1/tickets", body, extra=wait, report=False)

    def _patience(self, blocking: bool) -> float:
        return 0.0 if not blocking else LONG if self._wait is None else min(self._wait, LONG)

    def take(self, *, blocking: bool = True, model: Optional[str] = None, units: Optional[Mapping[str, float]] = None) -> Ticket:
        """Waits for a turn. RefusedNow tells that it did not come."""
        while True:
            try:
                return Ticket(self.gate.client, self.gate.tell(self._call(self._patience(blocking), model, units)))
            except RefusedNow:
                if not blocking or self._wait is not None:
                    raise

    async def atake(self, *, blocking: bool = True, model: Optional[str] = None, units: Optional[Mapping[str, float]] = None) -> Ticket:
        """``take`` for asyncio."""
        while True:
            try:
                await self.gate.found()
                granted: Any = await self.gate.atell(self._call(self._patience(blocking), model, units))
                return Ticket(self.gate.client, granted)
            except RefusedNow:
                if not blocking or self._wait is not None:
                    raise
