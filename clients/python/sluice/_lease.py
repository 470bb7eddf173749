"""An agent that is alive."""

from __future__ import annotations

import logging
import threading
from types import TracebackType
from typing import TYPE_CHECKING, Any, Optional, Sequence, Type

from ._errors import SluiceError
from ._types import Standing

if TYPE_CHECKING:
    from ._client import Client

log = logging.getLogger("sluice")

_hurry = 5.0  # seconds until the next try when one has failed


class Lease:
    """Keeps an agent alive with heartbeats from a thread of its own, and takes it off when the block is left. The first
    heartbeat is sent when the block is entered, and raises what is wrong; later ones are tried again, and ``error`` says
    why the last one failed."""

    def __init__(self, client: "Client", agent: Optional[str], every: float, **said: Any) -> None:
        if not every > 0:
            raise ValueError(f"every must be above 0 seconds, got {every!r}")
        self._client = client
        self._agent = agent
        self._every = every
        self._said = said
        self._beat = threading.Lock()  # one heartbeat at a time, so that an older one never overrules
        self._stop = threading.Event()
        self._thread: Optional[threading.Thread] = None
        self._standing: Optional[Standing] = None
        #: Why the last heartbeat failed, None if it did not.
        self.error: Optional[SluiceError] = None

    @property
    def standing(self) -> Standing:
        """What the agent was told last."""
        if self._standing is None:
            raise RuntimeError("the lease was not taken yet: use it as a context manager")
        return self._standing

    @property
    def start_new_work(self) -> bool:
        """Whether to start new work, as told last. Work that runs is to go on in any case."""
        return self.standing.start_new_work

    def update(self, *, waits_for: Optional[Sequence[str]] = None) -> Standing:
        """Sends a heartbeat at once, with what has changed."""
        if waits_for is not None:
            self._said["waits_for"] = list(waits_for)
        return self.beat()

    def beat(self) -> Standing:
        """Sends a heartbeat at once."""
        with self._beat:
            try:
                self._standing = self._client.heartbeat(self._agent, **self._said)
            except SluiceError as e:
                self.error = e
                raise
            self.error = None
            return self._standing

    def _run(self) -> None:
        pause = self._every
        while not self._stop.wait(pause):
            try:
                self.beat()
                pause = self._every
            except SluiceError as e:
                log.warning("heartbeat: %s", e)
                pause = min(self._every, _hurry)
            except Exception:  # the thread must live as long as the agent
                log.exception("heartbeat")

    def __enter__(self) -> "Lease":
        if self._thread is not None:
            raise RuntimeError("the lease is taken already")
        self.beat()
        self._stop.clear()
        self._thread = threading.Thread(target=self._run, name="sluice-lease", daemon=True)
        self._thread.start()
        return self

    def __exit__(self, kind: Optional[Type[BaseException]], e: Optional[BaseException], tb: Optional[TracebackType]) -> None:
        self._stop.set()
        if self._thread is not None:
            self._thread.join()
            self._thread = None
        try:
            self._client.leave(self._agent, machine=self._said.get("machine"))
        except SluiceError as problem:
            log.warning("leaving: %s; the lease ends by itself", problem)
