"""What can go wrong, as exceptions."""

from __future__ import annotations

import json
from datetime import datetime
from typing import Any, Dict, List, Mapping, Optional, Type


class SluiceError(Exception):
    """The gate said no, or could not be asked.

    ``status`` is that of HTTP, 0 if the daemon was not reached. ``detail`` says what was wrong, ``hint`` what to do about
    it. A refusal may also tell the ``limit``, ``why``, the ``chain`` of agents it is due to, and when it may help to come
    back: ``retry_after`` in seconds, ``retry_at`` as a time; both are None if unknown. If they depend on unanswered
    tickets, ``held_by`` names the agents of these, and ``held_until`` is when the last of them ends.
    """

    def __init__(
        self,
        detail: str,
        *,
        status: int = 0,
        hint: str = "",
        limit: str = "",
        why: str = "",
        retry_after: Optional[float] = None,
        retry_at: Optional[datetime] = None,
        chain: Optional[List[str]] = None,
        held_by: Optional[List[str]] = None,
        held_until: Optional[datetime] = None,
    ) -> None:
        super().__init__(detail)
        self.status = status
        self.detail = detail
        self.hint = hint
        self.limit = limit
        self.why = why
        self.retry_after = retry_after
        self.retry_at = retry_at
        self.chain: List[str] = chain or []
        self.held_by: List[str] = held_by or []
        self.held_until = held_until

    def __str__(self) -> str:
        return f"{self.detail} ({self.hint})" if self.hint else self.detail


class Invalid(SluiceError):
    """The request makes no sense: a field is wrong (400, 413, 415, 421)."""


class Unauthorized(SluiceError):
    """The daemon wants a token, and got none that it knows (401)."""


class Refused(SluiceError):
    """It is ruled out, now and later: a budget, a class, a cost above the limit (403). Do not try again."""


class NotFound(SluiceError):
    """There is no such resource, ticket or task (404)."""


class Ended(SluiceError):
    """The ticket has ended (409)."""


class RefusedNow(SluiceError):
    """The turn did not come within the wait (429). ``retry_after`` tells when it may."""


class Unavailable(SluiceError):
    """The daemon, or the store behind it, cannot be reached (503, or no answer at all)."""


class TimedOut(Unavailable):
    """The daemon did not answer in time."""


_kinds: Dict[int, Type[SluiceError]] = {
    400: Invalid,
    401: Unauthorized,
    403: Refused,
    404: NotFound,
    409: Ended,
    413: Invalid,
    415: Invalid,
    421: Invalid,
    429: RefusedNow,
    502: Unavailable,
    503: Unavailable,
    504: Unavailable,
}


def parse_time(text: Any) -> Optional[datetime]:
    """A time in RFC 3339, None if it is none. Python before 3.11 does not read them all."""
    if not isinstance(text, str):
        return None
    head, dot, rest = text.replace("Z", "+00:00").partition(".")
    if dot:  # fractions must have six digits, or there must be none
        digits = rest[: len(rest) - len(rest.lstrip("0123456789"))]
        head += "." + digits[:6].ljust(6, "0") + rest[len(digits) :]
    try:
        return datetime.fromisoformat(head)
    except ValueError:
        return None


def problem(status: int, headers: Mapping[str, str], body: bytes) -> SluiceError:
    """The exception for an answer that is an error."""
    p: Dict[str, Any] = {}
    try:
        got = json.loads(body.decode("utf-8"))
        if isinstance(got, dict):
            p = got
    except ValueError:
        pass  # whatever it is, it is not the daemon's

    def text(name: str) -> str:
        v = p.get(name)
        return v if isinstance(v, str) else ""

    after: Optional[float] = None
    ms = p.get("retry_after_ms")
    if isinstance(ms, (int, float)) and not isinstance(ms, bool):
        after = ms / 1000
    elif headers.get("Retry-After", "").isdigit():
        after = float(headers["Retry-After"])
    chain, held_by = p.get("chain"), p.get("held_by")
    kind = _kinds.get(status, SluiceError)
    detail, hint = text("detail") or text("title"), text("hint")
    if not detail:
        detail = f"the answer has status {status} and does not say why"
        hint = "is there a sluice daemon at this address?"
    return kind(
        detail,
        status=status,
        hint=hint,
        limit=text("limit"),
        why=text("why"),
        retry_after=after,
        retry_at=parse_time(p.get("retry_at")),
        chain=[str(c) for c in chain] if isinstance(chain, list) else None,
        held_by=[str(a) for a in held_by] if isinstance(held_by, list) else None,
        held_until=parse_time(p.get("held_until")),
    )
