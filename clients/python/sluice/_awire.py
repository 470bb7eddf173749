"""Connections to the daemon for asyncio: what _wire.Wire is for threads. It takes no thread, so any number of requests may wait."""

from __future__ import annotations

import asyncio
import time
from typing import Any, AsyncGenerator, Dict, List, Mapping, Optional, Tuple

from ._errors import TimedOut
from ._wire import Wire, _keep, _max_body, _stale

Connection = Tuple[asyncio.StreamReader, asyncio.StreamWriter]

class AsyncWire:
    """Sends requests to the daemon of a Wire. It belongs to one event loop."""

    def __init__(self, wire: Wire) -> None:
        self._wire = wire
        self._idle: List[Tuple[Connection, float]] = []
        self._guard: Optional[AsyncGenerator[None, None]] = None

    async def call(self, method: str, path: str, body: Optional[Mapping[str, Any]] = None, extra: float = 0.0) -> Any:
        """As Wire.call."""
        head, data = self._wire.head(method, path, body)
        if self._guard is None:
            self._guard = self._until_the_loop_ends()
            await self._guard.__anext__()
        within = self._wire.timeout + extra
        while True:
            conn, used = await self._take()
            try:
                conn[1].write(head + data)
                status, headers, raw, keep = await asyncio.wait_for(_response(conn[0]), within)
            except asyncio.TimeoutError as e:
                conn[1].close()
                raise TimedOut(f"the daemon at {self._wire.url} did not answer within {within:g} s", hint="is it running? timeout= gives it longer") from e
            except (OSError, asyncio.IncompleteReadError, ValueError) as e:
                conn[1].close()
                if used and not isinstance(e, ValueError):
                    continue  # the daemon closed it while it was idle
                raise self._wire._unreachable(e, within) from e
            except BaseException:
                conn[1].close()  # so the daemon stops holding the call
                raise
            if keep and len(self._idle) < _keep * 4:
                self._idle.append((conn, time.monotonic()))
            else:
                conn[1].close()
            return self._wire._read(status, headers, raw)

    async def _take(self) -> Tuple[Connection, bool]:
        now = time.monotonic()
        while self._idle:
            conn, since = self._idle.pop()
            if now - since < _stale and not conn[0].at_eof() and not conn[1].is_closing():
                return conn, True
            conn[1].close()
        try:
            return await asyncio.wait_for(self._wire.aconnect(), self._wire.timeout), False
        except (OSError, asyncio.TimeoutError) as e:
            raise self._wire._unreachable(e, self._wire.timeout) from e

    async def _until_the_loop_ends(self) -> AsyncGenerator[None, None]:
        """asyncio.run ends the generators that are left over, and with this one the connections."""
        try:
            yield
        finally:
            self.close()
            await asyncio.sleep(0)

    def close(self) -> None:
        idle, self._idle = self._idle, []
        for conn, _ in idle:
            conn[1].close()

async def _response(reader: asyncio.StreamReader) -> Tuple[int, Dict[str, str], bytes, bool]:
    """Reads one response of HTTP/1.1."""
    status_line = await reader.readline()
    if not status_line:
        raise asyncio.IncompleteReadError(b"", None)
    parts = status_line.split(b" ", 2)
    if len(parts) < 2 or not parts[0].startswith(b"HTTP/1.") or not parts[1].isdigit():
        raise ValueError("this is no HTTP")
    status, headers = int(parts[1]), {}
    while True:
        line = (await reader.readline()).strip()
        if not line:
            break
        name, _, value = line.decode("latin-1").partition(":")
        headers[name.strip().title()] = value.strip()
    keep = headers.get("Connection", "").lower() != "close"
    if status in (204, 304):
        return status, headers, b"", keep
    if headers.get("Transfer-Encoding", "").lower() == "chunked":
        chunks: List[bytes] = []
        while True:
            size = int((await reader.readline()).split(b";")[0], 16)
            if size > _max_body:
                raise ValueError("the answer is too long")
            chunk = await reader.readexactly(size + 2)
            if size == 0:
                return status, headers, b"".join(chunks), keep
            chunks.append(chunk[:-2])
    if "Content-Length" not in headers:
        return status, headers, await reader.read(_max_body), False
    return status, headers, await reader.readexactly(min(int(headers["Content-Length"]), _max_body)), keep

