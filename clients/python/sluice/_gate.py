"""The gate of HTTP clients: it drives the exchanges of _exchange for blocking and for asynchronous clients.

An adapter of an HTTP library states how it sends and reads; everything else is here, once.
"""

from __future__ import annotations

import asyncio
import json
import logging
import os
import sys
import threading
import time
import weakref
from typing import Any, Dict, Optional, Protocol, Tuple

from ._awire import AsyncWire
from ._client import Client
from ._errors import Ended, NotFound, Refused, RefusedNow, SluiceError, Unavailable
from ._exchange import Call, Outline, Seen, Step, Turn, Who, exchange
from ._start import locate

log = logging.getLogger("sluice")

ALIVE = 45.0  # seconds after which an exchange without news is said to go on


class Carrier(Protocol):
    """What an adapter can do. ``send``, ``read`` and ``drop`` are awaited in asynchronous adapters."""

    def send(self) -> Any:
        """Sends the request once, and returns its response when it has begun."""

    def seen(self, response: Any) -> Seen:
        """The beginning of a response."""
        ...

    def read(self, response: Any) -> Any:
        """Reads a response to its end and keeps it for the caller. It returns the body."""

    def drop(self, response: Any) -> Any:
        """Closes a response that the caller does not get."""

    def unsent(self, error: BaseException) -> bool:
        """Whether the error says that nothing was sent."""
        ...


class Gate:
    """The settings of an adapter. All are optional.

    ``resource`` is the name in the daemon's configuration; without it, the URL of a request says which one it is, and requests to
    addresses that no resource has are sent as they are. ``agent`` is who sends, by default ``$SLUICE_AGENT``, else the login
    name. ``cls``, ``user``, ``tool``, ``key`` (a label, never the key) and ``emergency`` are as in Client.acquire. ``wait`` is how many
    seconds a request may wait for its turn; the resource's ``client_deadline`` if it is not said.

    ``raises`` makes refusals of the gate exceptions (RefusedNow, Refused). Without it they are responses with status 429 or 403
    and the header X-Sluice-Refused, which SDKs turn into their own errors.

    ``client`` is the connection to the daemon. Without it, the daemon is the one at ``$SLUICE_URL`` or at the usual address; if none
    answers there, one is started for this user (``sluice serve`` on a Unix socket, which ends when it is idle)."""

    def __init__(
        self,
        resource: Optional[str] = None,
        *,
        agent: Optional[str] = None,
        cls: Optional[str] = None,
        user: Optional[str] = None,
        tool: Optional[str] = None,
        key: Optional[str] = None,
        wait: Optional[float] = None,
        emergency: bool = False,
        raises: bool = False,
        client: Optional[Client] = None,
    ) -> None:
        self._given = client
        self._client: Optional[Client] = client
        self._agent = agent
        self._who = Who(resource, agent or "", cls, user, tool, key, wait, emergency)
        self._who.said()  # raises what is wrong now
        self.raises = raises
        self._lock = threading.Lock()
        self._waiting = threading.Lock()
        self._wires: "weakref.WeakKeyDictionary[asyncio.AbstractEventLoop, AsyncWire]" = weakref.WeakKeyDictionary()
        self._alive = Alive(self)
        self._warned: Dict[str, bool] = {}

    @property
    def client(self) -> Client:
        """The connection to the daemon, which is found or started when it is first needed."""
        with self._lock:
            if self._client is None:
                self._client = Client(locate(), agent=self._agent)
            return self._client

    def who(self) -> Who:
        w = self._who
        return w if w.agent else Who(w.resource, self.client.agent, w.cls, w.user, w.tool, w.key, w.wait, w.emergency)

    def _lost(self, gone: Client) -> bool:
        """Forgets a daemon that does not answer, if another can be found or started in its place."""
        if self._given is not None:
            return False
        with self._lock:
            if self._client is gone:
                self._client = None
                self._wires.clear()
        return True

    # blocking

    def send(self, request: Outline, carrier: Carrier) -> Tuple[Any, Optional["Reading"]]:
        """Sends a request in its turn. Feed the Reading with the rest of the response, and end it."""
        steps = exchange(self.who(), request, carrier.seen, carrier.unsent)
        do = next(steps)
        turn = ""
        try:
            while True:
                try:
                    if isinstance(do, Call):
                        got = self.tell(do)
                        if not do.report:
                            turn = self._alive.begun(got, do)
                    else:
                        got = self._does(do, carrier, request)
                except BaseException as e:
                    do = steps.throw(e)
                else:
                    do = steps.send(got)
        except StopIteration as done:
            response, rest = done.value
            if rest is None:
                self._alive.over(turn)
                return response, None
            return response, Reading(self, rest, turn)
        except BaseException:
            self._alive.over(turn)
            raise

    def tell(self, call: Call) -> Any:
        """Tells the daemon. A report that fails is only logged: what was sent goes on."""
        client = self.client
        try:
            return client._wire.call(call.method, call.path, call.body, extra=call.extra) or {}
        except Unavailable:
            if call.report or not self._lost(client):
                return self._untold(call)
        except SluiceError:
            if not call.report:
                raise
            return self._untold(call)
        return self.client._wire.call(call.method, call.path, call.body, extra=call.extra) or {}

    def _does(self, do: Step, carrier: Carrier, request: Outline) -> Any:
        if do.do == "send":
            return carrier.send()
        return carrier.read(do.response) if do.do == "read" else carrier.drop(do.response)

    def _untold(self, call: Call) -> Any:
        """Within an except clause: raises what is wrong, unless it was only a report."""


        problem = sys.exc_info()[1]
        if not call.report and problem is not None:
            raise problem
        level = logging.DEBUG if isinstance(problem, (NotFound, Ended)) else logging.WARNING  # these know already
        log.log(level, "the gate does not know how a request went: %s", problem)
        return {}

    # asynchronous

    async def found(self) -> None:
        """Finds or starts the daemon without holding the loop up."""
        if self._client is None:
            await asyncio.get_running_loop().run_in_executor(None, lambda: self.client)

    async def asend(self, request: Outline, carrier: Carrier) -> Tuple[Any, Optional["Reading"]]:
        """``send`` for asyncio."""
        await self.found()
        steps = exchange(self.who(), request, carrier.seen, carrier.unsent)
        do = next(steps)
        turn = ""
        try:
            while True:
                try:
                    if isinstance(do, Call):
                        got = await self.atell(do)
                        if not do.report:
                            turn = self._alive.begun(got, do)
                    else:
                        got = await self._does(do, carrier, request)
                except BaseException as e:
                    do = steps.throw(e)
                else:
                    do = steps.send(got)
        except StopIteration as done:
            response, rest = done.value
            if rest is None:
                self._alive.over(turn)
                return response, None
            return response, Reading(self, rest, turn)
        except BaseException:
            self._alive.over(turn)
            raise

    async def atell(self, call: Call) -> Any:
        """``tell`` for asyncio. What a cancelled task has to tell is told all the same, as the loop may end now."""
        try:
            return await self._atell(call)
        except asyncio.CancelledError:
            if call.report and call.body is not None and call.body.get("ended"):
                self.tell(call)
            raise

    async def _atell(self, call: Call) -> Any:
        client = self.client
        try:
            return await self._wire_of(client).call(call.method, call.path, call.body, extra=call.extra) or {}
        except Unavailable:
            if call.report or not self._lost(client):
                return self._untold(call)
        except SluiceError:
            if not call.report:
                raise
            return self._untold(call)
        client = await asyncio.get_running_loop().run_in_executor(None, lambda: self.client)
        return await self._wire_of(client).call(call.method, call.path, call.body, extra=call.extra) or {}

    def _wire_of(self, client: Client) -> AsyncWire:
        loop = asyncio.get_running_loop()
        with self._lock:
            wire = self._wires.get(loop)
            if wire is None or wire._wire is not client._wire:
                wire = self._wires[loop] = AsyncWire(client._wire)
            return wire

    def close(self) -> None:
        """Closes the connections to the daemon, unless they were given."""
        self._alive.close()
        with self._lock:
            client, self._client = self._client, self._given
            if client is not None and self._given is None:
                client.close()


class Reading:
    """The rest of a response, on its way to the caller. ``feed`` and ``end`` are for threads, ``afeed`` and ``aend`` for asyncio."""

    def __init__(self, gate: Gate, turn: Turn, name: str) -> None:
        self._gate, self._turn, self._name = gate, turn, name

    def feed(self, piece: bytes) -> None:
        for call in self._turn.feed(piece):
            self._gate.tell(call)

    def end(self, how: str) -> None:
        for call in self._turn.end(how):
            self._gate._alive.over(self._name)
            self._gate.tell(call)

    async def afeed(self, piece: bytes) -> None:
        for call in self._turn.feed(piece):
            await self._gate.atell(call)

    async def aend(self, how: str) -> None:
        for call in self._turn.end(how):
            self._gate._alive.over(self._name)
            await self._gate.atell(call)


class Alive:
    """Says of exchanges that they go on: the daemon ends those of clients that are silent. One thread does it, while there are any."""

    def __init__(self, gate: Gate) -> None:
        self._gate = weakref.ref(gate)
        self._lock = threading.Lock()
        self._open: Dict[str, float] = {}
        self._wake = threading.Event()
        self._pid = 0

    def begun(self, granted: Any, call: Call) -> str:
        name = str(granted.get("exchange", ""))
        with self._lock:
            if self._pid != os.getpid():  # a child has none of its parent's threads
                self._open, self._pid = {}, os.getpid()
                threading.Thread(target=self._run, args=(self._wake,), name="sluice-alive", daemon=True).start()
            if name:
                self._open[name] = time.monotonic()
        return name

    def over(self, name: str) -> None:
        with self._lock:
            self._open.pop(name, None)

    def _run(self, wake: threading.Event) -> None:
        while not wake.wait(ALIVE / 3):
            gate = self._gate()
            if gate is None:
                return
            now = time.monotonic()
            with self._lock:
                due = [name for name, at in self._open.items() if now - at >= ALIVE]
                for name in due:
                    self._open[name] = now
            for name in due:
                try:
                    gate.client._wire.call("POST", f"/v1/exchanges/{name}/body", {})
                except SluiceError:
                    pass  # it has no response yet, or it has ended
            del gate

    def close(self) -> None:
        self._wake.set()


def refusal(e: SluiceError) -> Tuple[int, Dict[str, str], bytes]:
    """A refusal of the gate as a response: status, headers, body."""
    headers = {"content-type": "application/json", "x-sluice-refused": "1"}
    if isinstance(e, Refused):
        headers["x-should-retry"] = "false"
    elif e.retry_after is not None:
        headers["retry-after"] = str(min(59, max(1, round(e.retry_after))))
    error = {"message": "sluice: " + str(e), "type": "permission_error" if isinstance(e, Refused) else "rate_limit_error", "limit": e.limit or None}
    return e.status, headers, json.dumps({"error": error}).encode()


#: What the gate refuses, as the adapters see it.
REFUSALS = (RefusedNow, Refused)

