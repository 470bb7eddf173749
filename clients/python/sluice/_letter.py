"""Requests that were given up, for the daemon's dead letters. Keys never leave the process."""

from __future__ import annotations

import base64
import json
from dataclasses import dataclass
from typing import Any, Dict, List, Optional, Tuple, Union
from urllib.parse import unquote_plus, urlsplit

from ._types import Headers, Json, header_items

#: Parts of the names of headers and query parameters that may hold secrets, as the daemon has them.
SECRET = (
    "auth", "key", "token", "secret", "cookie", "passw", "credential", "signature", "session", "jwt", "bearer", "cert", "assertion",
    "x-amz-security", "sig",
)
LEAST = 8  # characters of a secret: what is shorter occurs by chance
MOST = 900_000  # bytes of a body, as JSON


@dataclass(frozen=True)
class Letter:
    """An HTTP request, to be kept as a dead letter if it is given up."""

    method: str
    url: str
    headers: Optional[Headers] = None
    body: Union[bytes, str, None] = b""
    """None means that the body cannot be kept."""


def letter_of(given: Any, response: Any, failed: Any) -> Optional[Letter]:
    """What is to be kept: what the caller gave, or for True the request of a response or an exception of httpx or requests."""
    if not given or isinstance(given, Letter):
        return given or None
    for source in (response, failed):
        try:
            request = getattr(source, "request", None)
            if request is None:
                continue
            body = request.content if hasattr(request, "content") else request.body
        except Exception:  # httpx raises if there is none, or if its body is a stream
            continue
        if body is None and not hasattr(request, "content"):
            body = b""  # requests: there is none
        return Letter(str(request.method), str(request.url), request.headers, body if isinstance(body, (bytes, str)) else None)
    return None


def is_secret(name: str) -> bool:
    name = name.lower()
    return name not in ("idempotency-key", "x-idempotency-key") and any(part in name for part in SECRET)


def plain_query(query: str) -> Tuple[str, List[Tuple[str, str]]]:
    """A query without the parameters that may hold secrets, and these: names and values as they are written."""
    kept: List[str] = []
    left: List[Tuple[str, str]] = []
    for part in query.split("&") if query else ():
        name, _, value = part.partition("=")
        if is_secret(unquote_plus(name)):
            left.append((name, value))
        else:
            kept.append(part)
    return "&".join(kept), left


def plain_letter(letter: Letter) -> Json:
    """The request as the daemon takes it, without secrets."""
    headers: Dict[str, str] = {}
    left: List[str] = []
    values: List[str] = []
    for name, value in header_items(letter.headers):
        if is_secret(name):
            if name not in left:
                left.append(name)
            values += [value, value.rsplit(" ", 1)[-1]]  # "Bearer KEY"
        else:
            headers[name] = headers[name] + ", " + value if name in headers else value
    url = urlsplit(letter.url)
    query, secrets = plain_query(url.query)
    for name, value in secrets:
        left.append("?" + name)
        values += [value, unquote_plus(value)]
    said: Json = {
        "method": letter.method.upper(), "path": (url.path or "/") + ("?" + query if query else ""), "headers": headers, "left_out": left,
    }
    body = letter.body.encode() if isinstance(letter.body, str) else letter.body
    if body is None or any(len(v) >= LEAST and v.encode() in body for v in values):
        return {**said, "body_lost": True}
    try:
        plain: Any = body.decode()
    except UnicodeDecodeError:
        plain = {"base64": base64.b64encode(body).decode()}
    if len(json.dumps(plain)) > MOST:
        return {**said, "body_lost": True}
    return {**said, "body": plain}
