"""Finding a daemon, or starting one for this user."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import sys
import sysconfig
import tempfile
import threading
import time
from urllib.parse import urlsplit

from ._client import DEFAULT_URL
from ._errors import Unavailable

#: How long a daemon that was started here lives without requests.
IDLE = "10m"
#: How many seconds a daemon may take to start.
WITHIN = 20.0

_lock = threading.Lock()


def locate(start: bool = True) -> str:
    """The address of the daemon: ``$SLUICE_URL``, else the usual address if one answers there, else a daemon of this user on a
    Unix socket, which is started if it does not run. ``SLUICE_START=off`` starts none."""
    stated = os.environ.get("SLUICE_URL")
    if stated:
        return stated
    if _listens_on_tcp():
        return DEFAULT_URL
    if not hasattr(socket, "AF_UNIX"):
        raise Unavailable(f"no daemon answers at {DEFAULT_URL}", hint="start it with: sluice serve; or set SLUICE_URL to where it is")
    path = socket_path()
    with _lock:
        if not _listens(path):
            if not start or os.environ.get("SLUICE_START", "").lower() in ("off", "0", "false", "no"):
                raise Unavailable(f"no daemon answers at {DEFAULT_URL} or {path}", hint="start it with: sluice serve; or set SLUICE_URL to where it is")
            _start(path)
    return "unix:" + path


def socket_path() -> str:
    """Where this user's daemon listens: in a directory that nobody else can enter."""
    base = os.environ.get("XDG_RUNTIME_DIR")
    directory = os.path.join(base, "sluice") if base else os.path.join(tempfile.gettempdir(), f"sluice-{os.getuid()}")
    os.makedirs(directory, mode=0o700, exist_ok=True)
    about = os.lstat(directory)
    if os.path.islink(directory) or about.st_uid != os.getuid() or about.st_mode & 0o022:
        raise Unavailable(f"{directory} is not a directory of this user alone", hint=f"remove it, or run chmod 700 {directory}")
    return os.path.join(directory, "gate.sock")


def binary() -> str:
    """The command: the one of this Python's environment, else the one in the PATH."""
    name = "sluice.exe" if os.name == "nt" else "sluice"
    for directory in (os.path.dirname(sys.executable), sysconfig.get_path("scripts")):
        path = os.path.join(directory, name)
        if os.access(path, os.X_OK):
            return path
    found = shutil.which(name)
    if found is None:
        raise Unavailable(
            f"no daemon answers at {DEFAULT_URL}, and the command sluice is not in the PATH",
            hint="pip install sluice-gate brings it; or set SLUICE_URL to where a daemon is",
        )
    return found


def _start(path: str) -> None:
    command = [binary(), "serve", "--listen", "unix:" + path, "--exit-idle", IDLE, "--json"]
    with open(path + ".log", "wb") as log:
        process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=log, start_new_session=True)
    end = time.monotonic() + WITHIN
    pause = threading.Event()
    while time.monotonic() < end:
        if _listens(path):
            _reap(process)
            return
        if process.poll() is not None and not _listens(path, 1.0):  # another process may have been first
            raise Unavailable(f"the daemon could not be started: {_last(path)}", hint="run it to see why: " + " ".join(command))
        pause.wait(0.02)
    process.kill()
    raise Unavailable(f"the daemon did not start within {WITHIN:g} s", hint="run it to see why: " + " ".join(command))


def _reap(process: "subprocess.Popen[bytes]") -> None:
    """Waits for the daemon's end in the background, so that it does not remain as a zombie."""
    threading.Thread(target=process.wait, name="sluice-daemon", daemon=True).start()


def _last(path: str) -> str:
    try:
        with open(path + ".log", encoding="utf-8", errors="replace") as log:
            lines = log.read().strip().splitlines()
    except OSError:
        return "it left no log"
    return lines[0] if lines else "it said nothing"


def _listens(path: str, within: float = 0.0) -> bool:
    end = time.monotonic() + within
    while True:
        s = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        try:
            s.settimeout(1.0)
            s.connect(path)
            return True
        except OSError:
            if time.monotonic() >= end:
                return False
            threading.Event().wait(0.02)
        finally:
            s.close()


def _listens_on_tcp() -> bool:
    at = urlsplit(DEFAULT_URL)
    try:
        socket.create_connection((at.hostname or "", at.port or 0), timeout=0.5).close()
    except OSError:
        return False
    return True

