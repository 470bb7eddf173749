"""For programs with aiohttp 3.12 or later.

    aiohttp.ClientSession(middlewares=[sluice.aiohttp.Middleware()])
"""

from __future__ import annotations

import asyncio
from typing import Any, Optional

import aiohttp
from aiohttp.base_protocol import BaseProtocol

from ._errors import SluiceError
from ._exchange import Outline, Seen, readable
from ._gate import REFUSALS, Gate, Reading, refusal

__all__ = ["Middleware", "GateResponseError"]


class GateResponseError(aiohttp.ClientResponseError):
    """The gate refuses a request: status 429 or 403. ``refusal`` is RefusedNow or Refused."""

    refusal: SluiceError


class _Flow(BaseProtocol):
    """Tells the pump when the reader has enough."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        super().__init__(loop)
        self.room = asyncio.Event()
        self.room.set()

    @property
    def connected(self) -> bool:
        return True

    def pause_reading(self) -> None:
        self.room.clear()

    def resume_reading(self, *args: Any, **kwargs: Any) -> None:
        self.room.set()


class _Carrying:
    def __init__(self, request: aiohttp.ClientRequest, handler: Any) -> None:
        self.request, self.handler = request, handler

    async def send(self) -> aiohttp.ClientResponse:
        response: aiohttp.ClientResponse = await self.handler(self.request)
        return response

    def seen(self, response: aiohttp.ClientResponse) -> Seen:
        return Seen(response.status, response.headers, plain=True)

    async def read(self, response: aiohttp.ClientResponse) -> bytes:
        return await response.read()  # which keeps it

    async def drop(self, response: aiohttp.ClientResponse) -> None:
        response.release()

    def unsent(self, error: BaseException) -> bool:
        return isinstance(error, (aiohttp.ClientConnectorError, aiohttp.ConnectionTimeoutError, aiohttp.InvalidURL))


class Middleware:
    """Sends requests of a session when it is their turn. The arguments are those of ``sluice.Gate``. What the gate refuses is a
    GateResponseError, unless ``raises`` is set."""

    def __init__(self, resource: Optional[str] = None, **settings: Any) -> None:
        self._gate = Gate(resource, **settings)

    async def __call__(self, request: aiohttp.ClientRequest, handler: Any) -> aiohttp.ClientResponse:
        accept = readable(request.headers)
        if accept is not None:
            request.headers["Accept-Encoding"] = accept
        payload: Any = request.body
        body: Optional[bytes] = payload if isinstance(payload, bytes) else getattr(payload, "_value", None)
        known = not payload or isinstance(body, bytes)
        outline = Outline(request.method, str(request.url), request.headers, body if known and payload else None, once=not known)
        try:
            response, rest = await self._gate.asend(outline, _Carrying(request, handler))
        except REFUSALS as e:
            if self._gate.raises:
                raise
            status, headers, text = refusal(e)
            error = GateResponseError(request.request_info, (), status=status, message=text.decode())
            error.refusal = e
            raise error from e
        if rest is not None:
            _watch(response, rest)
        return response  # type: ignore[no-any-return]

    def close(self) -> None:
        """Closes the connections to the daemon."""
        self._gate.close()


def _watch(response: Any, rest: Reading) -> None:
    """Puts a reader of ours in the place of the response's, and a task that fills it and tells the daemon."""
    loop = asyncio.get_running_loop()
    flow = _Flow(loop)
    source, reader = response.content, aiohttp.StreamReader(flow, limit=2**16, loop=loop)

    async def pump() -> None:
        try:
            async for piece in source.iter_any():
                reader.feed_data(piece)
                await rest.afeed(piece)
                await flow.room.wait()
        except asyncio.CancelledError:
            await rest.aend("left")
            raise
        except Exception as e:
            reader.set_exception(e)
            await rest.aend("broken")
        else:
            reader.feed_eof()
            await rest.aend("complete")

    task = loop.create_task(pump())
    response._sluice = task  # a task that nothing refers to may vanish
    response.content = reader
    close, release = response.close, response.release

    def closing() -> None:
        task.cancel()
        close()

    def releasing() -> Any:
        if not reader.is_eof():
            task.cancel()
        return release()

    response.close, response.release = closing, releasing
