"""For workers of Celery.

    @app.task(base=sluice.celery.Task, resource="openai")

A task that has to wait goes back to the broker and comes again when the gate says so. Meanwhile the worker does something else.
"""

from __future__ import annotations

import random
from typing import TYPE_CHECKING, Any, Dict, Optional

from ._errors import RefusedNow
from ._limiter import Limiter
from ._ticket import Ticket

if TYPE_CHECKING:

    class _Task:
        """What of a task of Celery, which has no types, is used here."""

        request: Any

        def __call__(self, *args: Any, **kwargs: Any) -> Any: ...

        def retry(self, **how: Any) -> Exception: ...

else:
    from celery import Task as _Task

__all__ = ["Task"]


class Task(_Task):
    """``resource`` is what a task sends to, ``gate`` the other arguments of ``Limiter``. ``ticket`` is the turn of the task that runs, for ``answer`` and
    ``used`` of a task with ``bind=True``; it ends with the task. Waiting counts as a retry of Celery, and not against ``max_retries``."""

    abstract: bool = True
    resource: str = ""
    gate: Dict[str, Any] = {}
    #: Seconds until a task comes again if the gate does not know when its turn is.
    again: float = 5.0
    _limiter: Optional[Limiter] = None

    @property
    def ticket(self) -> Optional[Ticket]:
        """The turn of the task that runs, None outside of one."""
        return getattr(self.request, "sluice_ticket", None)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        if not self.resource or self.request.called_directly:
            return super().__call__(*args, **kwargs)
        if self._limiter is None:
            self._limiter = Limiter(self.resource, **self.gate)
        try:
            ticket = self._limiter.take(blocking=False)
        except RefusedNow as e:
            wait = self.again if e.retry_after is None else e.retry_after
            raise self.retry(exc=e, countdown=wait + random.random() * min(1.0, wait), max_retries=self.request.retries + 1)
        with ticket:
            self.request.sluice_ticket = ticket  # each run of a task has a request of its own
            return super().__call__(*args, **kwargs)
