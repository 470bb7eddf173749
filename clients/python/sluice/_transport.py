"""What the transports for httpx and httpx2 have in common, which are one interface in two packages."""

from __future__ import annotations

from typing import Any, AsyncIterator, Generic, Iterator, Optional, Tuple, TypeVar

from ._exchange import Outline, Seen, readable
from ._gate import REFUSALS, Gate, Reading, refusal

T = TypeVar("T")


class Kit:
    """The names of the package that are needed."""

    def __init__(self, package: Any) -> None:
        self.Response = package.Response
        self.ByteStream = package.ByteStream
        self.NotRead = package.RequestNotRead
        self.unsent: Tuple[Any, ...] = (package.ConnectError, package.ConnectTimeout, package.PoolTimeout, package.UnsupportedProtocol)


def outline(request: Any, kit: Kit) -> Outline:
    """The request for the daemon. Its response must be readable for it."""
    accept = readable(request.headers)
    if accept is not None:
        request.headers["accept-encoding"] = accept
    try:
        body: Optional[bytes] = request.content
    except kit.NotRead:
        body = None  # a stream, which can be sent only once
    return Outline(request.method, str(request.url), request.headers, body, once=body is None)


class Carrying:
    """One request in a blocking transport."""

    def __init__(self, kit: Kit, inner: Any, request: Any) -> None:
        self.kit, self.inner, self.request = kit, inner, request

    def send(self) -> Any:
        return self.inner.handle_request(self.request)

    def seen(self, response: Any) -> Seen:
        return Seen(response.status_code, response.headers)

    def read(self, response: Any) -> bytes:
        try:
            body = b"".join(response.stream)
        finally:
            response.stream.close()
        response.stream = self.kit.ByteStream(body)
        return body

    def drop(self, response: Any) -> None:
        response.stream.close()

    def unsent(self, error: BaseException) -> bool:
        return isinstance(error, self.kit.unsent)


class AsyncCarrying(Carrying):
    """One request in an asynchronous transport."""

    async def send(self) -> Any:
        return await self.inner.handle_async_request(self.request)

    async def read(self, response: Any) -> bytes:  # type: ignore[override]
        try:
            body = b"".join([piece async for piece in response.stream])
        finally:
            await response.stream.aclose()
        response.stream = self.kit.ByteStream(body)
        return body

    async def drop(self, response: Any) -> None:  # type: ignore[override]
        await response.stream.aclose()


class Transporting(Generic[T]):
    """A transport that sends in its turn through ``inner``."""

    _kit: Kit
    _gate: Gate
    _inner: Any

    def _send(self, request: Any, stream: Any) -> Any:
        try:
            response, rest = self._gate.send(outline(request, self._kit), Carrying(self._kit, self._inner, request))
        except REFUSALS as e:
            return self._refused(e)
        if rest is not None:
            response.stream = stream(response.stream, rest)
        return response

    async def _asend(self, request: Any, stream: Any) -> Any:
        try:
            response, rest = await self._gate.asend(outline(request, self._kit), AsyncCarrying(self._kit, self._inner, request))
        except REFUSALS as e:
            return self._refused(e)
        if rest is not None:
            response.stream = stream(response.stream, rest)
        return response

    def _refused(self, e: Any) -> Any:
        if self._gate.raises:
            raise e
        status, headers, body = refusal(e)
        return self._kit.Response(status, headers=headers, stream=self._kit.ByteStream(body))


class Streaming:
    """The body of a response that is told to the daemon while it is read."""

    def __init__(self, source: Any, rest: Reading) -> None:
        self._source, self._rest = source, rest

    def __iter__(self) -> Iterator[bytes]:
        try:
            for piece in self._source:
                self._rest.feed(piece)
                yield piece
        except GeneratorExit:
            raise
        except BaseException:
            self._rest.end("broken")
            raise
        self._rest.end("complete")

    def close(self) -> None:
        try:
            self._source.close()
        finally:
            self._rest.end("left")


class AsyncStreaming:
    """Streaming for asynchronous clients."""

    def __init__(self, source: Any, rest: Reading) -> None:
        self._source, self._rest = source, rest

    async def __aiter__(self) -> AsyncIterator[bytes]:
        try:
            async for piece in self._source:
                await self._rest.afeed(piece)
                yield piece
        except GeneratorExit:
            raise
        except Exception:
            await self._rest.aend("broken")
            raise
        except BaseException:  # cancelled
            await self._rest.aend("left")
            raise
        await self._rest.aend("complete")

    async def aclose(self) -> None:
        try:
            await self._source.aclose()
        finally:
            await self._rest.aend("left")
