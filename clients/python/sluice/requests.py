"""For programs with requests.

    session.mount("https://", sluice.requests.Adapter())
"""

from __future__ import annotations

from typing import Any, Iterator, Mapping, Optional

import requests
from requests.adapters import HTTPAdapter

from ._exchange import Outline, Seen, readable
from ._gate import REFUSALS, Gate, Reading, refusal

__all__ = ["Adapter"]


class _Body:
    """The body of a streamed response (``Response.raw``) that is told to the daemon while it is read."""

    def __init__(self, raw: Any, rest: Reading) -> None:
        self._raw, self._rest = raw, rest

    def __getattr__(self, name: str) -> Any:
        return getattr(self._raw, name)

    def stream(self, amt: int = 2**16, decode_content: Optional[bool] = None) -> Iterator[bytes]:
        try:
            for piece in self._raw.stream(amt, decode_content=decode_content):
                self._rest.feed(piece)
                yield piece
        except GeneratorExit:
            raise
        except BaseException:
            self._rest.end("broken")
            raise
        self._rest.end("complete")

    def read(self, amt: Optional[int] = None, decode_content: Optional[bool] = None, **more: Any) -> bytes:
        piece: bytes = self._raw.read(amt, decode_content=decode_content, **more)
        self._rest.feed(piece)
        if amt is None or amt < 0 or not piece and amt:
            self._rest.end("complete")
        return piece

    def close(self) -> None:
        try:
            self._raw.close()
        finally:
            self._rest.end("left")

    def release_conn(self) -> None:
        try:
            self._raw.release_conn()
        finally:
            self._rest.end("left")


class _Carrying:
    def __init__(self, adapter: "Adapter", request: requests.PreparedRequest, how: Mapping[str, Any]) -> None:
        self.adapter, self.request, self.how = adapter, request, how

    def send(self) -> requests.Response:
        return self.adapter.straight(self.request, **self.how)

    def seen(self, response: requests.Response) -> Seen:
        return Seen(response.status_code, response.headers, plain=True)

    def read(self, response: requests.Response) -> bytes:
        return response.content  # which keeps it

    def drop(self, response: requests.Response) -> None:
        response.close()

    def unsent(self, error: BaseException) -> bool:
        return isinstance(error, (requests.exceptions.ConnectTimeout, requests.exceptions.InvalidURL)) or "NewConnectionError" in repr(error)


class Adapter(HTTPAdapter):
    """Sends requests of a session when it is their turn. The first argument and ``gate`` are as in ``sluice.Gate``: the resource, and a
    mapping of its other settings; everything else is HTTPAdapter's."""

    def __init__(self, resource: Optional[str] = None, *, gate: Optional[Mapping[str, Any]] = None, **adapter: Any) -> None:
        self._gate = Gate(resource, **(gate or {}))
        super().__init__(**adapter)

    def straight(self, request: requests.PreparedRequest, **how: Any) -> requests.Response:
        """Sends without a turn."""
        return super().send(request, **how)

    def send(self, request: requests.PreparedRequest, stream: bool = False, *args: Any, **how: Any) -> requests.Response:
        named = dict(zip(("timeout", "verify", "cert", "proxies"), args), stream=stream, **how)
        accept = readable(request.headers)
        if accept is not None:
            request.headers["Accept-Encoding"] = accept
        body = request.body.encode() if isinstance(request.body, str) else request.body
        whole = body if isinstance(body, bytes) else None
        outline = Outline(request.method or "GET", request.url or "", request.headers, whole, once=body is not None and whole is None)
        try:
            response, rest = self._gate.send(outline, _Carrying(self, request, named))
        except REFUSALS as e:
            if self._gate.raises:
                raise
            status, headers, text = refusal(e)
            response = requests.Response()
            response.status_code, response._content, response.url, response.request = status, text, request.url or "", request
            response.headers.update(headers)
            return response
        if rest is not None:
            response.raw = _Body(response.raw, rest)
        return response  # type: ignore[no-any-return]

    def close(self) -> None:
        """Closes the connections, and those to the daemon."""
        super().close()
        self._gate.close()
