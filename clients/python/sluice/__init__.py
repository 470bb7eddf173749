"""Client of the Sluice daemon: one gate that all callers of a shared API quota pass through."""

from __future__ import annotations

import importlib
from typing import Any

from . import aio
from ._client import DEFAULT_URL, Client
from ._errors import Ended, Invalid, NotFound, Refused, RefusedNow, SluiceError, TimedOut, Unauthorized, Unavailable
from ._gate import Gate
from ._lease import Lease
from ._letter import Letter
from ._retry import Answered, GaveUp, Retry
from ._ticket import Ticket
from ._types import Level, Route, Standing, Verdict
from ._wire import Abort

__version__ = "0.1.0"

__all__ = [
    "DEFAULT_URL",
    "Abort",
    "Answered",
    "Client",
    "Ended",
    "GaveUp",
    "Gate",
    "Invalid",
    "Lease",
    "Letter",
    "Level",
    "NotFound",
    "Refused",
    "RefusedNow",
    "Retry",
    "Route",
    "SluiceError",
    "Standing",
    "Ticket",
    "TimedOut",
    "Unauthorized",
    "Unavailable",
    "Verdict",
    "aio",
]

# Modules that need another package. They are imported when they are used: sluice.httpx.Transport().
_adapters = ("aiohttp", "celery", "httpx", "httpx2", "langchain", "litellm", "llamaindex", "pydantic_ai", "requests", "temporal")


def __getattr__(name: str) -> Any:
    if name in _adapters:
        return importlib.import_module("." + name, __name__)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
