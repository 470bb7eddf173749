"""The gate, as a client sees it."""

from __future__ import annotations

import getpass
import logging
import math
import os
import socket
import ssl
import time
from types import TracebackType
from typing import Any, Callable, Dict, List, Mapping, Optional, Sequence, Tuple, Type, TypeVar, Union, cast
from urllib.parse import quote

from ._errors import RefusedNow, SluiceError
from ._lease import Lease
from ._letter import Letter, letter_of, plain_letter
from ._retry import Answered, GaveUp, Retry, Trial, read
from ._ticket import Ticket
from ._types import Body, Headers, Json, Route, Standing, plain_body, plain_headers
from ._wire import Abort, Wire

DEFAULT_URL = "http://127.0.0.1:7979"
DEFAULT_WAIT = 30.0

R = TypeVar("R")
log = logging.getLogger("sluice")


class Client:
    """Asks a daemon. One client serves all threads of a program, and keeps its connections open.

    ``url`` is ``http://HOST:PORT``, ``https://HOST:PORT`` or ``unix:PATH``; without it ``$SLUICE_URL``, else
    ``http://127.0.0.1:7979``. ``token`` is the daemon's, if it wants one; without it ``$SLUICE_TOKEN``. ``agent`` is who asks
    where a call does not say; without it ``$SLUICE_AGENT``, else whom the token is for, or the login name if there is no
    token. ``timeout`` is how many seconds the daemon may take to answer, besides the time that a call waits for its turn.
    """

    def __init__(
        self,
        url: Optional[str] = None,
        token: Optional[str] = None,
        agent: Optional[str] = None,
        timeout: float = 10.0,
        *,
        ssl_context: Optional[ssl.SSLContext] = None,
    ) -> None:
        if not timeout > 0:
            raise ValueError(f"timeout must be above 0 seconds, got {timeout!r}")
        if token is None:
            token = os.environ.get("SLUICE_TOKEN", "")
        self._wire = Wire(url or os.environ.get("SLUICE_URL") or DEFAULT_URL, token, timeout, ssl_context)
        self.agent: str = agent or os.environ.get("SLUICE_AGENT") or ("" if token else _login())

    @property
    def url(self) -> str:
        """Where the daemon is."""
        return self._wire.url

    def __repr__(self) -> str:
        return f"<Client {self.url}>"

    def acquire(
        self,
        resource: str,
        *,
        agent: Optional[str] = None,
        cls: Optional[str] = None,
        user: Optional[str] = None,
        tool: Optional[str] = None,
        model: Optional[str] = None,
        key: Optional[str] = None,
        units: Optional[Mapping[str, float]] = None,
        wait: Optional[float] = None,
        emergency: bool = False,
        retry: bool = False,
        ttl: Optional[float] = None,
        explicit: bool = False,
        abort: Optional[Abort] = None,
    ) -> Ticket:
        """Waits for the turn, up to ``wait`` seconds (30 if it is not said; 0 does not wait; 600 at most), and returns a
        ticket. ``units`` is what the request costs, one request if it is not said; ``usd`` is in dollars. ``ttl`` is how many
        seconds the ticket lives unless it is ended. ``key`` is the label of the API key, as ``sluice key NAME`` prints it; never send the key itself.
        RefusedNow tells that the turn did not come, Refused that it never will. ``abort`` breaks the waiting off from
        another thread."""
        wait_ms, extra = self._waiting(wait)
        body: Json = {"resource": resource, "wait_ms": wait_ms}
        for name, value in (("agent", agent or self.agent), ("class", cls), ("user", user), ("tool", tool), ("model", model), ("key", key)):
            if value:
                body[name] = value
        if units is not None:
            body["units"] = dict(units)
        if emergency:
            body["emergency"] = True
        if retry:
            body["retry"] = True
        if ttl is not None:
            body["ttl_ms"] = _ms("ttl", ttl)
        got = self._call("POST", "/v1/tickets", body, extra=extra, abort=abort)
        return Ticket(self, got, explicit)

    def ticket(self, resource: str, **how: Any) -> Ticket:
        """The same as ``acquire``, to be read in ``with client.ticket("github") as t:``."""
        return self.acquire(resource, **how)

    def do(
        self, resource: str, send: Callable[[Ticket], R], *, policy: Optional[Retry] = None, letter: Union[Letter, bool] = False, **how: Any
    ) -> R:
        """Sends a request when it is its turn, and again if that can help: after a refusal, an overload or a failure of the
        provider. ``send`` gets the ticket, sends the request once, and returns the response: of httpx, requests, anything
        with a status and headers, or ``Answered``. Waits and walls are those of ``policy``; ``how`` is as in ``acquire``.
        GaveUp tells that a wall was reached. Use it only for requests that may be repeated.

        ``letter`` is the request, to be kept as a dead letter if it is given up and the resource has ``dead_letters: on``. True
        takes it from the response or the exception, which those of httpx and requests allow. Keys are not sent to the daemon."""
        trial = Trial(resource, policy or Retry(), how.get("cls"), time.monotonic)
        while True:
            try:
                t = self.acquire(resource, **{**how, "wait": trial.wait(), "retry": trial.sends > 0 or how.get("retry", False)})
            except RefusedNow as refused:
                self._bury(trial, letter, refused, how)
                raise
            response: Optional[R] = None
            answered: Optional[Answered] = None
            failed: Optional[BaseException] = None
            with t:
                trial.sends += 1
                try:
                    response = send(t)
                except trial.policy.on as e:
                    verdict, held, failed = "error", False, e
                else:
                    answered = read(response)
                    said = t.answer(answered.status, answered.headers, answered.body)
                    verdict, held = said.verdict, said.held
            try:
                wait = trial.again(verdict, held, answered, response)
            except GaveUp as given:
                trial.last(response, failed, verdict, answered)
                self._bury(trial, letter, given, how)
                raise given from failed
            if wait is None:
                return cast(R, response)  # there is one: an error is tried again, or given up
            trial.last(response, failed, verdict, answered)
            self._sleep(wait)

    def _bury(self, trial: Trial, given: Any, why: SluiceError, how: Mapping[str, Any]) -> None:
        """Has a request kept that was given up. Where that fails it is only told: the caller hears why it was given up."""
        letter = letter_of(given, trial.response, trial.failed)
        if letter is None:
            return
        try:
            body = plain_letter(letter)
            body.update(resource=trial.resource, attempts=trial.sends, status=trial.status, verdict=trial.verdict, reason=str(why)[:150])
            for name, value in (("agent", how.get("agent") or self.agent), ("class", trial.cls), *((k, how.get(k)) for k in ("user", "tool", "model"))):
                if value:
                    body[name] = value
            self._call("POST", "/v1/dead-letters", body)
        except Exception as problem:
            log.warning("the request could not be kept as a dead letter: %s", problem)

    def gated(self, resource: str, request: Callable[..., R], *, policy: Optional[Retry] = None, **how: Any) -> Callable[..., R]:
        """An existing client's method, such as ``httpx.Client().request`` or ``requests.Session().get``, behind the gate. It is
        called as before, waits for its turn, and is repeated as in ``do``. When a wall is reached it returns the last
        response, if there is one. ``letter=True`` keeps what is given up, as in ``do``."""

        def call(*args: Any, **kwargs: Any) -> R:
            try:
                return self.do(resource, lambda _: request(*args, **kwargs), policy=policy, **how)
            except GaveUp as given:
                if given.response is None:
                    raise
                return cast(R, given.response)

        return call

    _sleep = staticmethod(time.sleep)

    def heartbeat(
        self,
        agent: Optional[str] = None,
        *,
        cls: Optional[str] = None,
        user: Optional[str] = None,
        machine: Optional[str] = None,
        waits_for: Sequence[str] = (),
        resources: Sequence[str] = (),
    ) -> Standing:
        """Says that an agent is alive, and returns what it should know. The first one takes its slot."""
        body: Json = {"machine": machine or socket.gethostname()}
        for name, value in (("class", cls), ("user", user)):
            if value:
                body[name] = value
        if waits_for:
            body["waits_for"] = list(waits_for)
        if resources:
            body["resources"] = list(resources)
        return Standing.of(self._call("PUT", self._agent_path(agent), body))

    def leave(self, agent: Optional[str] = None, *, machine: Optional[str] = None) -> None:
        """Says that an agent has ended. What it held goes to the others at once."""
        self._call("DELETE", self._agent_path(agent), query={"machine": machine or socket.gethostname()})

    def lease(
        self,
        agent: Optional[str] = None,
        *,
        cls: Optional[str] = None,
        user: Optional[str] = None,
        machine: Optional[str] = None,
        waits_for: Sequence[str] = (),
        resources: Sequence[str] = (),
        every: float = 60.0,
    ) -> Lease:
        """An agent that is alive as long as the block: heartbeats are sent every so many seconds."""
        return Lease(self, agent, every, cls=cls, user=user, machine=machine, waits_for=waits_for, resources=resources)

    def observe(
        self,
        resource: str,
        status: int,
        headers: Optional[Headers] = None,
        *,
        body: Optional[Body] = None,
        agent: Optional[str] = None,
        model: Optional[str] = None,
    ) -> str:
        """Tells of an answer to a request that was sent without a ticket. It returns what it means. ``body`` is as in
        ``Ticket.answer``."""
        said: Json = {"status": status, "headers": plain_headers(headers)}
        for name, value in (("body", plain_body(body)), ("agent", agent or self.agent), ("model", model)):
            if value:
                said[name] = value
        return str(self._call("POST", _resource(resource) + "/observe", said).get("verdict", ""))

    def pause(self, resource: str, seconds: float = 60.0, reason: str = "") -> None:
        """Holds all requests for so many seconds."""
        self._call("POST", _resource(resource) + "/pause", {"for_ms": _ms("seconds", seconds), "reason": reason})

    def resume(self, resource: str) -> None:
        """Ends a pause."""
        self._call("POST", _resource(resource) + "/resume", {})

    def route(
        self,
        task: str,
        units: Optional[Mapping[str, float]] = None,
        *,
        agent: Optional[str] = None,
        cls: Optional[str] = None,
        user: Optional[str] = None,
    ) -> Route:
        """The model to use now for a task, as the limits apply to the agent."""
        body: Json = {"task": task}
        for name, value in (("agent", agent or self.agent), ("class", cls), ("user", user)):
            if value:
                body[name] = value
        if units is not None:
            body["units"] = dict(units)
        return Route.of(self._call("POST", "/v1/route", body))

    def status(self) -> Json:
        """The state of the gate, as ``sluice status --json`` has it."""
        return _object(self._call("GET", "/v1/status"))

    def pool(self, resource: str) -> Json:
        """Who has which part of a resource, as ``sluice pool --json`` has it."""
        return _object(self._call("GET", "/v1/pool/" + quote(resource, safe="")))

    def why(self, resource: Optional[str] = None, *, agent: Optional[str] = None, ticket: Optional[str] = None) -> List[Json]:
        """Who waits, and why."""
        query = {k: v for k, v in (("resource", resource), ("agent", agent), ("ticket", ticket)) if v}
        return list(_object(self._call("GET", "/v1/why", query=query)).get("waiting") or [])

    def report(self, since: str = "24h") -> Json:
        """What was sent since a time: ``24h``, ``7d``, or one in RFC 3339."""
        return _object(self._call("GET", "/v1/report", query={"since": since}))

    def close(self) -> None:
        """Closes the connections. Tickets that are not ended lapse."""
        self._wire.close()

    def __enter__(self) -> "Client":
        return self

    def __exit__(self, kind: Optional[Type[BaseException]], e: Optional[BaseException], tb: Optional[TracebackType]) -> None:
        self.close()

    def _call(self, method: str, path: str, body: Optional[Json] = None, **how: Any) -> Any:
        return self._wire.call(method, path, body, **how)

    def _agent_path(self, agent: Optional[str]) -> str:
        name = agent or self.agent
        if not name:
            raise ValueError("agent is missing: give it here, in Client(agent=...) or in SLUICE_AGENT")
        return "/v1/agents/" + quote(name, safe="")

    @staticmethod
    def _waiting(wait: Optional[float]) -> Tuple[int, float]:
        """How long a call waits, for the daemon, and how much longer its answer may take."""
        ms = _ms("wait", DEFAULT_WAIT if wait is None else wait)
        return ms, ms / 1000


def _resource(name: str) -> str:
    return "/v1/resources/" + quote(name, safe="")


def _ms(name: str, seconds: float) -> int:
    if not 0 <= seconds <= 10**7:
        raise ValueError(f"{name} must be 0 to {10**7} seconds, got {seconds!r}")
    return math.ceil(seconds * 1000)


def _object(v: Any) -> Dict[str, Any]:
    if not isinstance(v, dict):
        raise SluiceError("the answer is no object", hint="is there a sluice daemon at this address?")
    return v


def _login() -> str:
    try:
        return getpass.getuser()
    except (KeyError, OSError, ImportError):
        return "python"
