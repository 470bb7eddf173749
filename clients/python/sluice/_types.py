"""What the gate answers."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Dict, Iterator, List, Mapping, Optional, Tuple, Union

Json = Dict[str, Any]

# Headers of an answer as HTTP libraries have them: anything with items(), or a plain mapping.
Headers = Union[Mapping[str, str], Any]


def _known(n: Any) -> Optional[int]:
    return None if n is None else int(n)


@dataclass(frozen=True)
class Level:
    """What is left of a limit. ``limit`` and ``remaining`` are ``None`` while the size is not known."""

    name: str
    kind: str
    unit: str
    limit: Optional[int]
    remaining: Optional[int]

    @classmethod
    def of(cls, d: Json) -> "Level":
        return cls(str(d.get("name", "")), str(d.get("kind", "")), str(d.get("unit", "")), _known(d.get("limit")), _known(d.get("remaining")))


@dataclass(frozen=True)
class Verdict:
    """What an answer meant to the gate. ``held`` tells that the resource is held now: ask for a new ticket at once instead
    of sleeping, because the queue's order is better than any backoff of yours."""

    verdict: str
    held: bool


@dataclass(frozen=True)
class Standing:
    """What an agent is told: the light of its resource, its part of the quota (None if unknown), and whether to start new work. If not,
    ``chain`` names the agents that this is due to, and ``reason`` says it in words. ``taken_over_by`` is the machine that has the
    agent's lease now, if it is another."""

    light: str
    allocated: Optional[int]
    start_new_work: bool
    chain: List[str] = field(default_factory=list)
    reason: str = ""
    taken_over_by: str = ""

    @classmethod
    def of(cls, d: Json) -> "Standing":
        return cls(
            str(d.get("light", "")),
            _known(d.get("allocated")),
            bool(d.get("start_new_work", True)),
            [str(c) for c in d.get("chain") or []],
            str(d.get("reason", "")),
            str(d.get("taken_over_by", "")),
        )


@dataclass(frozen=True)
class Route:
    """The model to use now for a task. ``wait`` is in seconds, None if unknown."""

    model: str
    resource: str
    wait: Optional[float]
    usd_per_mtok: float
    reason: str

    @classmethod
    def of(cls, d: Json) -> "Route":
        ms = d.get("wait_ms")
        return cls(
            str(d.get("model", "")),
            str(d.get("resource", "")),
            None if ms is None else ms / 1000,
            float(d.get("usd_per_mtok", 0)),
            str(d.get("reason", "")),
        )


# Headers that say nothing about quotas and may be secrets, or hold some.
_private = {
    "set-cookie", "set-cookie2", "cookie", "authorization", "proxy-authorization", "www-authenticate", "x-api-key", "referer", "baggage", "location",
}
_longest = 4096
_most = 200


def header_items(headers: Optional[Headers]) -> Iterator[Tuple[str, str]]:
    """Names and values of headers in any of their forms, one for each value."""
    items: Any = headers
    if items is None:
        return
    for name, value in items.items() if hasattr(items, "items") else items:
        for v in value if isinstance(value, (list, tuple)) else (value,):
            yield _text(name), _text(v)


def _text(v: Any) -> str:
    return v.decode("latin-1") if isinstance(v, bytes) else str(v)


def plain_headers(headers: Optional[Headers]) -> Dict[str, str]:
    """Headers as the API takes them: one string for each name, and no secrets."""
    out: Dict[str, str] = {}
    for name, value in header_items(headers):
        name = name.lower()
        if name in _private or len(name) + len(value) > _longest:
            continue
        if name in out:
            value = out[name] + ", " + value
        elif len(out) >= _most:
            continue
        out[name] = value
    return out


# How much of a body the gate looks at.
_most_body = 64 << 10

# The body of an answer, as far as it was read.
Body = Union[str, bytes, bytearray, memoryview]


def plain_body(body: Optional[Body]) -> Optional[str]:
    """The beginning of a body, as the API takes it; None if there is none."""
    if not body:
        return None
    if isinstance(body, str):
        return body[:_most_body]
    return bytes(body[:_most_body]).decode("utf-8", "replace")
