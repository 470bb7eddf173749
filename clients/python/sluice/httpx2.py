"""For programs with httpx2, and SDKs on top of it.

    OpenAI(http_client=httpx2.Client(transport=sluice.httpx2.Transport()))
"""

from __future__ import annotations

from typing import Any, Optional

import httpx2

from ._gate import Gate
from ._transport import AsyncStreaming, Kit, Streaming, Transporting

__all__ = ["AsyncTransport", "Transport"]

_kit = Kit(httpx2)


class _Stream(Streaming, httpx2.SyncByteStream):
    pass


class _AsyncStream(AsyncStreaming, httpx2.AsyncByteStream):
    pass


class Transport(Transporting[httpx2.Response], httpx2.BaseTransport):
    """Sends requests of an ``httpx2.Client`` when it is their turn. The arguments are those of ``sluice.Gate``; ``transport`` is what sends,
    by default ``httpx2.HTTPTransport()``."""

    def __init__(self, resource: Optional[str] = None, *, transport: Optional[httpx2.BaseTransport] = None, **settings: Any) -> None:
        self._gate = Gate(resource, **settings)
        self._kit = _kit
        self._inner: httpx2.BaseTransport = transport or httpx2.HTTPTransport()

    def handle_request(self, request: httpx2.Request) -> httpx2.Response:
        response: httpx2.Response = self._send(request, _Stream)
        return response

    def close(self) -> None:
        """Closes the transport below, and the connections to the daemon."""
        self._inner.close()
        self._gate.close()


class AsyncTransport(Transporting[httpx2.Response], httpx2.AsyncBaseTransport):
    """Transport for ``httpx2.AsyncClient`` on asyncio."""

    def __init__(self, resource: Optional[str] = None, *, transport: Optional[httpx2.AsyncBaseTransport] = None, **settings: Any) -> None:
        self._gate = Gate(resource, **settings)
        self._kit = _kit
        self._inner: httpx2.AsyncBaseTransport = transport or httpx2.AsyncHTTPTransport()

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        response: httpx2.Response = await self._asend(request, _AsyncStream)
        return response

    async def aclose(self) -> None:
        """Closes the transport below, and the connections to the daemon."""
        await self._inner.aclose()
        self._gate.close()
