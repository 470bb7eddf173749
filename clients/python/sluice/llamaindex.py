"""For models and embeddings of LlamaIndex.

    OpenAI(model="gpt-4o", rate_limiter=sluice.llamaindex.RateLimiter("openai"))

LlamaIndex asks before each call. It passes an estimate of tokens where it has one, and shows no response, so the gate does not learn what was
used or refused. Models that take an HTTP client are better off with ``sluice.httpx``.
"""

from __future__ import annotations

from typing import Any, Mapping, Optional

from llama_index.core.rate_limiter import BaseRateLimiter

from ._limiter import Limiter

__all__ = ["RateLimiter"]


class RateLimiter(BaseRateLimiter):
    """Takes a turn for each call. The arguments are those of ``Limiter``; a ticket counts as in flight for ``ttl``, 5 seconds unless it is said."""

    def __init__(self, resource: str, **how: Any) -> None:
        self._limiter = Limiter(resource, **{"ttl": 5.0, **how})

    def acquire(self, num_tokens: int = 0) -> None:
        self._limiter.take(units=_units(num_tokens))

    async def async_acquire(self, num_tokens: int = 0) -> None:
        await self._limiter.atake(units=_units(num_tokens))


def _units(tokens: int) -> Optional[Mapping[str, float]]:
    return {"requests": 1, "input_tokens": tokens, "tokens": tokens} if tokens > 0 else None
