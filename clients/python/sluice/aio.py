"""The same for asyncio: calls run in threads, so that the loop goes on.

Calls that may wait for a turn have threads of their own. Otherwise waiting calls could keep a ticket's holder from
giving it back.
"""

from __future__ import annotations

import asyncio
import functools
import time
from concurrent.futures import Future, ThreadPoolExecutor
from types import TracebackType
from typing import Any, AsyncIterator, Awaitable, Callable, Mapping, Optional, Type, TypeVar, Union, cast
from contextlib import asynccontextmanager

from ._client import Client
from ._errors import RefusedNow, SluiceError
from ._letter import Letter
from ._retry import Answered, GaveUp, Retry, Trial, read
from ._ticket import Ticket
from ._types import Body, Headers, Json, Route, Standing, Verdict
from ._wire import Abort

T = TypeVar("T")


class AsyncTicket:
    """A ticket whose calls are awaited. See Ticket."""

    def __init__(self, owner: "AsyncClient", ticket: Ticket) -> None:
        self._owner = owner
        #: The ticket, with its id, resource, agent, cls, waited and limits.
        self.ticket = ticket

    @property
    def id(self) -> str:
        return self.ticket.id

    def sending(self) -> None:
        self.ticket.sending()

    def used(self, usage: Mapping[str, float]) -> None:
        self.ticket.used(usage)

    async def answer(self, status: int, headers: Optional[Headers] = None, body: Optional[Body] = None) -> Verdict:
        return await self._owner._quick(self.ticket.answer, status, headers, body)

    async def close(self, usage: Optional[Mapping[str, float]] = None) -> None:
        await self._owner._quick(self.ticket.close, usage)

    async def cancel(self) -> None:
        await self._owner._quick(self.ticket.cancel)


class AsyncClient:
    """Client for asyncio. Its arguments are Client's; ``waiting`` is how many calls may wait for their turn at once,
    further ones wait here."""

    def __init__(self, *args: Any, waiting: int = 64, **kwargs: Any) -> None:
        self.client: Client = Client(*args, **kwargs)
        self._slow = ThreadPoolExecutor(waiting, thread_name_prefix="sluice-wait")
        self._fast = ThreadPoolExecutor(8, thread_name_prefix="sluice")

    async def acquire(self, resource: str, **how: Any) -> AsyncTicket:
        """Waits for the turn. When the task is cancelled, the place in the queue is given up."""
        abort = Abort()
        job: "Future[Ticket]" = self._slow.submit(functools.partial(self.client.acquire, resource, abort=abort, **how))
        try:
            return AsyncTicket(self, await asyncio.wrap_future(job))
        except asyncio.CancelledError:
            abort.abort()
            job.add_done_callback(_give_back)
            raise

    @asynccontextmanager
    async def ticket(self, resource: str, **how: Any) -> AsyncIterator[AsyncTicket]:
        """``async with client.ticket("github") as t:`` ends the ticket by the rule of Ticket, also when the task is
        cancelled."""
        async with self._ending(await self.acquire(resource, **how)) as t:
            yield t

    @asynccontextmanager
    async def _ending(self, t: AsyncTicket) -> AsyncIterator[AsyncTicket]:
        try:
            yield t
        finally:
            await asyncio.shield(self._quick(t.ticket.__exit__, None, None, None))

    async def do(
        self, resource: str, send: Callable[[AsyncTicket], Awaitable[T]], *, policy: Optional[Retry] = None, letter: Union[Letter, bool] = False, **how: Any
    ) -> T:
        """Client.do for asyncio: ``send`` is awaited."""
        trial = Trial(resource, policy or Retry(), how.get("cls"), time.monotonic)
        while True:
            asked = {**how, "wait": trial.wait(), "retry": trial.sends > 0 or how.get("retry", False)}
            try:
                granted = await self.acquire(resource, **asked)
            except RefusedNow as refused:
                await self._quick(self.client._bury, trial, letter, refused, how)
                raise
            response: Optional[T] = None
            answered: Optional[Answered] = None
            failed: Optional[BaseException] = None
            async with self._ending(granted) as t:
                trial.sends += 1
                try:
                    response = await send(t)
                except trial.policy.on as e:
                    verdict, held, failed = "error", False, e
                else:
                    answered = read(response)
                    said = await t.answer(answered.status, answered.headers, answered.body)
                    verdict, held = said.verdict, said.held
            try:
                wait = trial.again(verdict, held, answered, response)
            except GaveUp as given:
                trial.last(response, failed, verdict, answered)
                await self._quick(self.client._bury, trial, letter, given, how)
                raise given from failed
            if wait is None:
                return cast(T, response)  # as in Client.do
            trial.last(response, failed, verdict, answered)
            await self._sleep(wait)

    def gated(self, resource: str, request: Callable[..., Awaitable[T]], *, policy: Optional[Retry] = None, **how: Any) -> Callable[..., Awaitable[T]]:
        """Client.gated for asyncio, such as ``httpx.AsyncClient().request``."""

        async def call(*args: Any, **kwargs: Any) -> T:
            try:
                return await self.do(resource, lambda _: request(*args, **kwargs), policy=policy, **how)
            except GaveUp as given:
                if given.response is None:
                    raise
                return cast(T, given.response)

        return call

    _sleep = staticmethod(asyncio.sleep)

    async def heartbeat(self, agent: Optional[str] = None, **said: Any) -> Standing:
        return await self._quick(functools.partial(self.client.heartbeat, agent, **said))

    async def leave(self, agent: Optional[str] = None, *, machine: Optional[str] = None) -> None:
        await self._quick(functools.partial(self.client.leave, agent, machine=machine))

    async def pause(self, resource: str, seconds: float = 60.0, reason: str = "") -> None:
        await self._quick(self.client.pause, resource, seconds, reason)

    async def resume(self, resource: str) -> None:
        await self._quick(self.client.resume, resource)

    async def route(
        self,
        task: str,
        units: Optional[Mapping[str, float]] = None,
        *,
        agent: Optional[str] = None,
        cls: Optional[str] = None,
        user: Optional[str] = None,
    ) -> Route:
        return await self._quick(functools.partial(self.client.route, task, units, agent=agent, cls=cls, user=user))

    async def status(self) -> Json:
        return await self._quick(self.client.status)

    async def call(self, fn: Callable[..., T], *args: Any) -> T:
        """Runs any other method of ``client``: ``await c.call(c.client.why, "github")``."""
        return await self._quick(fn, *args)

    async def _quick(self, fn: Callable[..., T], *args: Any) -> T:
        return await asyncio.wrap_future(self._fast.submit(fn, *args))

    async def close(self) -> None:
        """Ends the threads and closes the connections."""
        await asyncio.get_running_loop().run_in_executor(None, self._end)

    def _end(self) -> None:
        self._slow.shutdown()
        self._fast.shutdown()
        self.client.close()

    async def __aenter__(self) -> "AsyncClient":
        return self

    async def __aexit__(self, kind: Optional[Type[BaseException]], e: Optional[BaseException], tb: Optional[TracebackType]) -> None:
        await self.close()


def _give_back(job: "Future[Ticket]") -> None:
    """Gives back a ticket that arrived after its caller had given up. It runs in the thread that got it."""
    if job.cancelled() or job.exception() is not None:
        return
    try:
        job.result().cancel()
    except SluiceError:
        pass  # it lapses
