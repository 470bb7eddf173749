"""For workers of Temporal.

    Worker(client, task_queue="calls", activities=[call], interceptors=[sluice.temporal.Interceptor("openai")])

An activity that has to wait fails with the time until its turn as its next retry delay. Meanwhile the worker does something else.
"""

from __future__ import annotations

from datetime import timedelta
from typing import Any, Callable, Optional

import temporalio.activity
from temporalio.exceptions import ApplicationError
from temporalio.worker import ActivityInboundInterceptor, ExecuteActivityInput
from temporalio.worker import Interceptor as Base

from ._errors import RefusedNow
from ._limiter import Limiter

__all__ = ["Interceptor"]


class Interceptor(Base):
    """Runs activities in their turn. ``gates`` says of an activity's name whether it is one that sends; all do if it is not said. Other arguments are those of
    ``Limiter``. Activities need a retry policy without a small ``maximum_attempts``."""

    def __init__(self, resource: str, *, gates: Optional[Callable[[str], bool]] = None, again: float = 5.0, **how: Any) -> None:
        self._limiter, self._gates, self._again = Limiter(resource, **how), gates, again

    def intercept_activity(self, next: ActivityInboundInterceptor) -> ActivityInboundInterceptor:
        return _Inbound(next, self._limiter, self._gates, self._again)


class _Inbound(ActivityInboundInterceptor):
    def __init__(self, next: ActivityInboundInterceptor, limiter: Limiter, gates: Optional[Callable[[str], bool]], again: float) -> None:
        super().__init__(next)
        self._limiter, self._gates, self._again = limiter, gates, again

    async def execute_activity(self, input: ExecuteActivityInput) -> Any:
        if self._gates is not None and not self._gates(temporalio.activity.info().activity_type):
            return await self.next.execute_activity(input)
        try:
            ticket = await self._limiter.atake(blocking=False)
        except RefusedNow as e:
            wait = timedelta(seconds=self._again if e.retry_after is None else e.retry_after)
            raise ApplicationError(str(e), type="sluice.RefusedNow", next_retry_delay=wait) from e
        with ticket:
            return await self.next.execute_activity(input)
