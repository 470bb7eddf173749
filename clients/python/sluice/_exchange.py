"""One request that this process sends in its turn: what the daemon is told, and in which order.

Nothing here sends or waits. ``exchange`` is a generator: it yields what is to be done next, and adapters for blocking and for
asynchronous HTTP clients do it. The daemon reads what is told: models, costs, limits, usage and whether to send again are its part.
"""

from __future__ import annotations

import base64
import logging
import zlib
from dataclasses import dataclass
from typing import Any, Dict, Generator, List, Optional, Set, Tuple, Union
from urllib.parse import quote

from ._errors import NotFound
from ._letter import is_secret
from ._types import Headers, Json, header_items, plain_headers

log = logging.getLogger("sluice")

_ungated: Set[str] = set()  # addresses that were told of

#: A response whose beginning is read before anybody gets it: the text of a refusal, or a JSON document, which comes at once.
SMALL = 1 << 20
#: How much of a response is held back until it is told, and how much is told at a time.
HOLD = 256 << 10
PIECE = 512 << 10
#: How much of one is told at most.
MOST = 64 << 20
#: Bodies of requests that are longer, or that are no JSON, say nothing to the daemon.
LONGEST = 24 << 20
#: The longest a request waits here without a ``wait`` of its own: the daemon ends its wait before.
PATIENCE = 660.0


@dataclass(frozen=True)
class Call:
    """Something that the daemon is told. ``report`` says that the request goes on if that fails."""

    method: str
    path: str
    body: Optional[Json] = None
    extra: float = 0.0
    report: bool = True


@dataclass(frozen=True)
class Step:
    """Something that the adapter is to do: ``send`` the request, ``read`` the whole response, or ``drop`` it."""

    do: str
    response: Any = None


@dataclass(frozen=True)
class Who:
    """Who sends, and what for. ``resource`` None takes the one that the URL belongs to."""

    resource: Optional[str] = None
    agent: str = ""
    cls: Optional[str] = None
    user: Optional[str] = None
    tool: Optional[str] = None
    key: Optional[str] = None
    wait: Optional[float] = None
    emergency: bool = False

    def said(self) -> Json:
        """The fields as the daemon takes them."""
        named = (("resource", self.resource), ("agent", self.agent), ("class", self.cls), ("user", self.user), ("tool", self.tool), ("key", self.key))
        body: Json = {name: value for name, value in named if value}
        if self.emergency:
            body["emergency"] = True
        if self.wait is not None:
            if not 0 <= self.wait <= 600:
                raise ValueError(f"wait must be 0 to 600 seconds, got {self.wait!r}")
            body["wait_ms"] = int(self.wait * 1000)
        return body


@dataclass(frozen=True)
class Outline:
    """The request. ``body`` is None if it is not known, ``once`` if it cannot be sent again."""

    method: str
    url: str
    headers: Headers
    body: Optional[bytes] = None
    once: bool = False


@dataclass(frozen=True)
class Seen:
    """The beginning of a response. ``plain`` tells that its body comes decompressed."""

    status: int
    headers: Headers
    plain: bool = False


Steps = Generator[Union[Call, Step], Any, Tuple[Any, Optional["Turn"]]]


def exchange(who: Who, request: Outline, seen: Any, unsent: Any) -> Steps:
    """Takes a request through its turn. It returns the response, and the Turn to which the rest of its body is told, None if
    nothing remains to be told. ``seen(response)`` reads the beginning of one; ``unsent(error)`` tells that nothing was sent."""
    try:
        granted = yield Call("POST", "/v1/exchanges", opening(who, request), extra=PATIENCE if who.wait is None else who.wait, report=False)
    except NotFound as e:
        if who.resource or not e.detail.startswith("no resource has the address"):
            raise
        site = "/".join(request.url.split("/")[:3])
        if site not in _ungated and len(_ungated) < 1000:
            _ungated.add(site)
            log.warning("requests to %s are not gated: no resource of the gate has this address", site)
        return (yield Step("send")), None
    path = "/v1/exchanges/" + quote(granted["exchange"], safe="")
    while True:
        body: Optional[bytes] = None
        try:
            response = yield Step("send")
            begun: Seen = seen(response)
            if comes_at_once(begun):
                body = yield Step("read", response)
        except GeneratorExit:
            raise
        except BaseException as e:
            if unsent(e):
                yield Call("DELETE", path)
                raise
            left = not isinstance(e, Exception)  # cancelled, or interrupted
            told = yield Call("POST", path + "/answer", {"error": type(e).__name__, "ended": "left" if left else "broken"}, extra=PATIENCE)
            if not left and told.get("send_again"):
                continue
            raise
        turn = Turn(path, begun)
        said: Json = {"status": begun.status, "headers": plain_headers(begun.headers)}
        pieces = turn.pieces(body or b"")
        said.update(pieces.pop(0) if pieces else {})
        if body is not None and not pieces:
            said["ended"] = "complete"
        told = yield Call("POST", path + "/answer", said, extra=PATIENCE)
        if told.get("send_again"):
            yield Step("drop", response)
            continue
        for piece in pieces:
            yield Call("POST", path + "/body", piece)
        if body is not None and "ended" not in said:
            yield Call("POST", path + "/body", {"ended": "complete"})
        return response, None if body is not None else turn


class Turn:
    """A response that is being read. What ``feed`` and ``end`` return is to be told to the daemon."""

    def __init__(self, path: str, begun: Seen) -> None:
        self.path = path
        self._unpack = None if begun.plain else unpacker(begun.headers)
        self._held: List[bytes] = []
        self._size = 0
        self._told = 0
        self._reads = begun.plain or self._unpack is not None
        self._reads = self._reads and speaks(content_type(begun.headers))
        self.over = False

    def pieces(self, body: bytes) -> List[Json]:
        """A part of the response as the daemon takes it."""
        if self._unpack is not None and body:
            try:
                body = self._unpack(body)
            except zlib.error:
                body, self._reads = b"", False
        if not self._reads:
            return []
        return [{"body": in_json(body[i : i + PIECE])} for i in range(0, len(body), PIECE)]

    def feed(self, piece: bytes) -> List[Call]:
        """Takes the next bytes of the body."""
        if self.over or not self._reads or self._told >= MOST:
            return []
        self._held.append(bytes(piece))
        self._size += len(piece)
        return self._flush() if self._size >= HOLD else []

    def _flush(self) -> List[Call]:
        pieces = self.pieces(b"".join(self._held))
        self._told += self._size
        self._held, self._size = [], 0
        return [Call("POST", self.path + "/body", piece) for piece in pieces]

    def end(self, how: str) -> List[Call]:
        """Ends it: ``complete``, ``left`` by who reads it, or ``broken``. Only the first call tells anything."""
        if self.over:
            return []
        self.over = True
        calls = self._flush() or [Call("POST", self.path + "/body", {})]
        last = calls.pop()
        return [*calls, Call("POST", self.path + "/body", {**(last.body or {}), "ended": how})]


def opening(who: Who, request: Outline) -> Json:
    """With what an exchange begins."""
    headers: Dict[str, str] = {}
    for name, value in header_items(request.headers):
        if not is_secret(name) and len(value) < 4096:
            headers[name.lower()] = value
    body = {**who.said(), "method": request.method, "url": request.url.partition("#")[0], "headers": headers}
    if request.once:
        body["once"] = True
    if request.body and len(request.body) <= LONGEST and "json" in content_type(request.headers):
        body["body"] = in_json(request.body)
    return body


def comes_at_once(begun: Seen) -> bool:
    """Whether the whole response is read before it is passed on: then it is told at once, with the text of a refusal."""
    kind, size = content_type(begun.headers), field(begun.headers, "content-length")
    small = not size.isdigit() or int(size) <= SMALL
    return small and (begun.status >= 400 and "event-stream" not in kind or kind.endswith("json"))


def speaks(kind: str) -> bool:
    """Whether the body of such a response can say what was used."""
    return "json" in kind or "event-stream" in kind or "eventstream" in kind


def unpacker(headers: Headers) -> Any:
    """What decompresses a response for the daemon. None if nothing here can."""
    encoding = field(headers, "content-encoding").lower()
    if encoding in ("", "identity"):
        return lambda piece: piece
    if encoding in ("gzip", "x-gzip", "deflate"):
        return zlib.decompressobj(zlib.MAX_WBITS | 32).decompress
    return None


def readable(headers: Headers) -> Optional[str]:
    """The Accept-Encoding to send in place of the one that is there, so that ``unpacker`` can read the response."""
    accepts = field(headers, "accept-encoding").lower()
    return "gzip, deflate" if "br" in accepts or "zstd" in accepts else None


def in_json(body: bytes) -> Any:
    try:
        return body.decode("utf-8")
    except UnicodeDecodeError:
        return {"base64": base64.b64encode(body).decode()}


def field(headers: Headers, name: str) -> str:
    for key, value in header_items(headers):
        if key.lower() == name:
            return value.strip()
    return ""


def content_type(headers: Headers) -> str:
    return field(headers, "content-type").partition(";")[0].strip().lower()
