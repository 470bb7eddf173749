"""For programs with httpx, and SDKs on top of it.

    OpenAI(http_client=httpx.Client(transport=sluice.httpx.Transport()))
"""

from __future__ import annotations

from typing import Any, Optional

import httpx

from ._gate import Gate
from ._transport import AsyncStreaming, Kit, Streaming, Transporting

__all__ = ["AsyncTransport", "Transport"]

_kit = Kit(httpx)


class _Stream(Streaming, httpx.SyncByteStream):
    pass


class _AsyncStream(AsyncStreaming, httpx.AsyncByteStream):
    pass


class Transport(Transporting[httpx.Response], httpx.BaseTransport):
    """Sends requests of an ``httpx.Client`` when it is their turn. The arguments are those of ``sluice.Gate``; ``transport`` is what sends,
    by default ``httpx.HTTPTransport()``."""

    def __init__(self, resource: Optional[str] = None, *, transport: Optional[httpx.BaseTransport] = None, **settings: Any) -> None:
        self._gate = Gate(resource, **settings)
        self._kit = _kit
        self._inner: httpx.BaseTransport = transport or httpx.HTTPTransport()

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        response: httpx.Response = self._send(request, _Stream)
        return response

    def close(self) -> None:
        """Closes the transport below, and the connections to the daemon."""
        self._inner.close()
        self._gate.close()


class AsyncTransport(Transporting[httpx.Response], httpx.AsyncBaseTransport):
    """Transport for ``httpx.AsyncClient`` on asyncio."""

    def __init__(self, resource: Optional[str] = None, *, transport: Optional[httpx.AsyncBaseTransport] = None, **settings: Any) -> None:
        self._gate = Gate(resource, **settings)
        self._kit = _kit
        self._inner: httpx.AsyncBaseTransport = transport or httpx.AsyncHTTPTransport()

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        response: httpx.Response = await self._asend(request, _AsyncStream)
        return response

    async def aclose(self) -> None:
        """Closes the transport below, and the connections to the daemon."""
        await self._inner.aclose()
        self._gate.close()
