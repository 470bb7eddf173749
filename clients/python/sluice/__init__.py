"""Client of the Sluice daemon: one gate that all callers of a shared API quota pass through."""

from . import aio
from ._client import DEFAULT_URL, Client
from ._errors import Ended, Invalid, NotFound, Refused, RefusedNow, SluiceError, TimedOut, Unauthorized, Unavailable
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
