"""For models of Pydantic AI.

    ConcurrencyLimitedModel("openai:gpt-4o", limiter=sluice.pydantic_ai.ConcurrencyLimiter("openai"))

Pydantic AI asks before each call and says when it is over, so the gate counts requests and how many are in flight, and no tokens. Providers
that take an HTTP client are better off with ``sluice.httpx``.
"""

from __future__ import annotations

import asyncio
import logging
import threading
from collections import deque
from typing import Any, Deque

from pydantic_ai.concurrency import AbstractConcurrencyLimiter

from ._errors import SluiceError
from ._limiter import Limiter
from ._ticket import Ticket

__all__ = ["ConcurrencyLimiter"]

_log = logging.getLogger("sluice")


class ConcurrencyLimiter(AbstractConcurrencyLimiter):
    """Takes a turn for each call, and holds it until the call is over. The arguments are those of ``Limiter``."""

    def __init__(self, resource: str, **how: Any) -> None:
        self._limiter = Limiter(resource, **how)
        self._held: Deque[Ticket] = deque()

    async def acquire(self, source: str) -> None:
        model = source[len("model:") :] if source.startswith("model:") else None
        self._held.append(await self._limiter.atake(model=model))

    def release(self) -> None:
        ticket = self._held.popleft()  # which one it is makes no difference
        try:
            asyncio.get_running_loop()
        except RuntimeError:
            _close(ticket)
        else:
            threading.Thread(target=_close, args=(ticket,), name="sluice-close").start()


def _close(ticket: Ticket) -> None:
    try:
        ticket.close()
    except SluiceError as e:
        _log.warning("ticket %s could not be ended: %s", ticket.id, e)
