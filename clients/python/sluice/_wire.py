"""Connections to the daemon: kept open, shared by threads, over TCP, TLS or a Unix socket."""

from __future__ import annotations

import asyncio
import http.client
import json
import os
import select
import socket
import ssl
import threading
import time
from typing import Any, Dict, List, Mapping, Optional, Tuple
from urllib.parse import urlencode, urlsplit

from ._errors import Invalid, SluiceError, TimedOut, Unavailable, problem

_keep = 16  # idle connections; more are closed after use
_stale = 60.0  # the daemon closes idle ones after two minutes
_max_body = 64 << 20  # of an answer


class Abort:
    """Breaks a call off from another thread."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._conn: Optional[http.client.HTTPConnection] = None
        self.aborted: bool = False

    def abort(self) -> None:
        with self._lock:
            self.aborted = True
            if self._conn is not None and self._conn.sock is not None:
                try:
                    self._conn.sock.shutdown(socket.SHUT_RDWR)
                except OSError:
                    pass  # it is closed

    def begin(self, conn: http.client.HTTPConnection) -> None:
        with self._lock:
            if self.aborted:
                raise ConnectionAbortedError("broken off")
            self._conn = conn

    def end(self) -> None:
        """From now on the connection is another call's."""
        with self._lock:
            self._conn = None


class _UnixConnection(http.client.HTTPConnection):
    def __init__(self, path: str, timeout: float) -> None:
        super().__init__("localhost", timeout=timeout)
        self._path = path

    def connect(self) -> None:
        s = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        try:
            s.settimeout(self.timeout)
            s.connect(self._path)
        except BaseException:
            s.close()
            raise
        self.sock = s


class Wire:
    """Sends requests to one daemon. All methods may be called from any thread."""

    def __init__(self, url: str, token: str, timeout: float, context: Optional[ssl.SSLContext]) -> None:
        self.url = url
        self._token = token
        self.timeout = timeout
        self._context = context
        self._lock = threading.Lock()
        self._idle: List[Tuple[http.client.HTTPConnection, float]] = []
        self._pid = os.getpid()
        self._closed = False
        self._prefix = ""
        self._unix = ""
        self._netloc = ""
        if token and any(c in token for c in "\r\n\0"):
            raise ValueError("token must not contain a line break or a NUL")
        if url.startswith("unix:"):
            path = url[len("unix:") :]
            self._unix = path[2:] if path.startswith("//") else path
            if not self._unix:
                raise ValueError("url unix: needs the path of a socket, such as unix:/run/sluice.sock")
            return
        parts = urlsplit(url)
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise ValueError("url must be http://HOST:PORT, https://HOST:PORT or unix:PATH")
        if parts.username is not None or parts.query or parts.fragment:
            raise ValueError("url must contain only an address and a path; pass a token as token=...")
        self._tls = parts.scheme == "https"
        self._host, self._port, self._netloc = parts.hostname, parts.port, parts.netloc
        self._prefix = parts.path.rstrip("/")

    def call(
        self,
        method: str,
        path: str,
        body: Optional[Mapping[str, Any]] = None,
        query: Optional[Mapping[str, str]] = None,
        extra: float = 0.0,
        again: bool = True,
        abort: Optional[Abort] = None,
    ) -> Any:
        """Sends one request and returns its JSON, None if there is none. ``extra`` is how much longer than usual the answer
        may take. ``again`` allows a second try where a connection that was kept open turns out to be closed."""
        if query:
            path += "?" + urlencode(query)
        headers, data = self._message(body)
        while True:
            conn, used = self._take(self.timeout + extra)
            try:
                if abort is not None:
                    if conn.sock is None:
                        conn.connect()
                    abort.begin(conn)
                conn.request(method, self._prefix + path, body=data, headers=headers)
                resp = conn.getresponse()
                raw = _all(resp)
                status, got, keep = resp.status, resp.headers, not resp.will_close and resp.isclosed()
            except (http.client.HTTPException, OSError) as e:
                conn.close()
                if abort is not None and abort.aborted:
                    raise Unavailable("the call was broken off") from e
                if used and again and isinstance(e, (http.client.RemoteDisconnected, BrokenPipeError, ConnectionResetError)):
                    continue  # the daemon closed it while it was idle
                raise self._unreachable(e, self.timeout + extra) from e
            except BaseException:
                conn.close()
                raise
            finally:
                if abort is not None:
                    abort.end()
            if keep:
                self._give(conn)
            else:
                conn.close()
            return self._read(status, got, raw)

    def _message(self, body: Optional[Mapping[str, Any]]) -> Tuple[Dict[str, str], Optional[bytes]]:
        """The headers and the body of a request."""
        headers = {"Accept": "application/json", "User-Agent": "sluice-python"}
        if self._token:
            headers["Authorization"] = "Bearer " + self._token
        if body is None:
            return headers, None
        headers["Content-Type"] = "application/json"
        return headers, json.dumps(body).encode("utf-8")

    def head(self, method: str, path: str, body: Optional[Mapping[str, Any]]) -> Tuple[bytes, bytes]:
        """A request as bytes, for AsyncWire."""
        headers, data = self._message(body)
        headers["Host"] = "localhost" if self._unix else self._netloc
        headers["Content-Length"] = str(len(data or b""))
        lines = [f"{method} {self._prefix}{path} HTTP/1.1", *(f"{name}: {value}" for name, value in headers.items()), "", ""]
        return "\r\n".join(lines).encode("latin-1"), data or b""

    async def aconnect(self) -> Tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        """A connection for AsyncWire."""
        if self._unix:
            return await asyncio.open_unix_connection(self._unix, limit=1 << 20)
        context = (self._context or ssl.create_default_context()) if self._tls else None
        return await asyncio.open_connection(self._host, self._port or (443 if self._tls else 80), ssl=context, limit=1 << 20)

    def _read(self, status: int, headers: Any, raw: bytes) -> Any:
        if status >= 400:
            raise problem(status, headers, raw)
        if not 200 <= status < 300:
            raise SluiceError(f"the answer has status {status}", status=status, hint="is there a sluice daemon at this address?")
        if not raw:
            return None
        try:
            if len(raw) <= _max_body:
                return json.loads(raw.decode("utf-8"))
        except ValueError:
            pass
        raise SluiceError("the answer is not JSON", status=status, hint="is there a sluice daemon at this address?")

    def _unreachable(self, e: BaseException, within: float) -> Unavailable:
        if isinstance(e, (socket.timeout, TimeoutError)):
            return TimedOut(f"the daemon at {self.url} did not answer within {within:g} s", hint="is it running? timeout= gives it longer")
        return Unavailable(
            f"the daemon at {self.url} cannot be reached: {str(e) or type(e).__name__}",
            hint="start it with: sluice serve; or set SLUICE_URL to where it is",
        )

    def _take(self, timeout: float) -> Tuple[http.client.HTTPConnection, bool]:
        with self._lock:
            if self._closed:
                raise Invalid("the client is closed")
            if self._pid != os.getpid():  # a child must not talk over its parent's connections
                for conn, _ in self._idle:
                    conn.close()
                self._idle, self._pid = [], os.getpid()
            now = time.monotonic()
            while self._idle:
                conn, since = self._idle.pop()
                if now - since < _stale and not _ended(conn):
                    conn.timeout = timeout
                    if conn.sock is not None:
                        conn.sock.settimeout(timeout)
                    return conn, True
                conn.close()
        if self._unix:
            return _UnixConnection(self._unix, timeout), False
        if self._tls:
            return http.client.HTTPSConnection(self._host, self._port, timeout=timeout, context=self._context), False
        return http.client.HTTPConnection(self._host, self._port, timeout=timeout), False

    def _give(self, conn: http.client.HTTPConnection) -> None:
        with self._lock:
            if not self._closed and len(self._idle) < _keep and self._pid == os.getpid():
                self._idle.append((conn, time.monotonic()))
                return
        conn.close()

    def close(self) -> None:
        with self._lock:
            self._closed = True
            idle, self._idle = self._idle, []
        for conn, _ in idle:
            conn.close()


def _all(resp: http.client.HTTPResponse) -> bytes:
    parts: List[bytes] = []
    size = 0
    while size <= _max_body:
        part = resp.read(1 << 16)
        if not part:
            break
        parts.append(part)
        size += len(part)
    return b"".join(parts)


def _ended(conn: http.client.HTTPConnection) -> bool:
    """Reports that the other side has closed the connection: nothing else can come when nothing was asked."""
    if conn.sock is None:
        return True
    try:
        if hasattr(select, "poll"):  # select cannot watch descriptors above 1023
            p = select.poll()
            p.register(conn.sock, select.POLLIN)
            return bool(p.poll(0))
        return bool(select.select([conn.sock], [], [], 0)[0])
    except (OSError, ValueError):
        return True
