"""For chat models of LangChain.

    ChatOpenAI(model="gpt-4o", rate_limiter=sluice.langchain.RateLimiter("openai"))

LangChain asks a rate limiter before each call and shows it neither the call nor its response, so the gate counts requests and no
tokens, and does not learn of refusals. Models that take an HTTP client are better off with ``sluice.httpx``.
"""

from __future__ import annotations

from typing import Any

from langchain_core.rate_limiters import BaseRateLimiter

from ._errors import RefusedNow
from ._limiter import Limiter

__all__ = ["RateLimiter"]


class RateLimiter(BaseRateLimiter):
    """Takes a turn for each call. The arguments are those of ``Limiter``; a ticket counts as in flight for ``ttl``, 5 seconds unless it is said."""

    def __init__(self, resource: str, **how: Any) -> None:
        self._limiter = Limiter(resource, **{"ttl": 5.0, **how})

    def acquire(self, *, blocking: bool = True) -> bool:
        try:
            self._limiter.take(blocking=blocking)
        except RefusedNow:
            return False
        return True

    async def aacquire(self, *, blocking: bool = True) -> bool:
        try:
            await self._limiter.atake(blocking=blocking)
        except RefusedNow:
            return False
        return True
