import os
import socket
import threading
from typing import Any, List

import sluice

from .common import Case, env


class Fleet(Case):
    def test_heartbeat_and_leave(self) -> None:
        s = self.client.heartbeat("walker/1", cls="p1", user="me", machine="box", waits_for=["other"])
        self.assertEqual((s.light, s.start_new_work, s.chain), ("green", True, []))
        a = self.agents()["walker/1"]
        self.assertEqual((a["class"], a["user"], a["machine"], a["waits_for"]), ("p1", "me", "box", ["other"]))
        self.client.leave("walker/1", machine="box")
        self.assertNotIn("walker/1", self.agents())

    def test_move(self) -> None:
        self.client.heartbeat("mover", machine="here")
        s = self.client.heartbeat("mover", machine="there")
        self.assertEqual(s.taken_over_by, "")
        moved = self.client.heartbeat("mover", machine="here")
        self.assertEqual((moved.taken_over_by, moved.allocated), ("there", None))
        self.assertEqual(self.agents()["mover"]["machine"], "there")
        self.client.leave("mover", machine="there")

    def test_lease(self) -> None:
        with self.client.lease("keeper", cls="p2", every=0.05) as lease:
            self.assertTrue(lease.start_new_work)
            first = lease.standing
            self.assertIn("keeper", self.agents())
            self.until("another heartbeat", lambda: lease.standing is not first)
            lease.update(waits_for=["a", "b"])
            self.assertEqual(self.agents()["keeper"]["waits_for"], ["a", "b"])
            self.assertIsNone(lease.error)
        self.assertNotIn("keeper", self.agents())
        self.assertNotIn("sluice-lease", [t.name for t in threading.enumerate()])

    def test_lease_that_is_refused(self) -> None:
        bob = self.made(token=env("TEST_LOW_TOKEN"))
        with self.assertRaises(sluice.Refused):
            with bob.lease("eve"):
                self.fail("it was taken")
        with self.assertRaisesRegex(ValueError, r"^every must be above 0 seconds, got 0$"):
            self.client.lease("x", every=0)

    def test_lease_survives_a_failure(self) -> None:
        c = self.made()
        with self.assertLogs("sluice", "WARNING"):
            with c.lease("lonely", every=0.02) as lease:
                c.close()
                self.until("an error", lambda: lease.error)
        self.client.leave("lonely")

    def test_pause_and_resume(self) -> None:
        self.client.pause("paused", 60, "hands off")
        r = self.resource("paused")
        self.assertEqual(r["pause_reason"], "hands off")
        with self.assertRaises(sluice.RefusedNow) as caught:
            self.client.acquire("paused", wait=0)
        assert caught.exception.retry_after is not None
        self.assertGreater(caught.exception.retry_after, 1)
        self.client.resume("paused")
        self.client.acquire("paused", wait=60).cancel()

    def test_observe_and_others(self) -> None:
        self.assertEqual(self.client.observe("throttled", 429, {"Retry-After": "30"}), "throttled")
        self.assertIsNotNone(self.resource("throttled")["paused_until"])
        r = self.client.route("simple")
        self.assertEqual((r.model, r.resource, r.wait), ("small", "wide", 0))
        self.client.heartbeat("pooled")
        self.assertIn("pooled", self.client.pool("wide")["allocations"])
        self.client.leave("pooled")
        self.assertIn("resources", self.client.report("7d"))


class Reaching(Case):
    def test_without_tokens(self) -> None:
        c = self.made(env("TEST_OPEN_URL"), token="", agent="opener")
        with c.ticket("wide") as t:
            self.assertEqual(t.agent, "opener")

    def test_socket(self) -> None:
        c = self.made(env("TEST_SOCKET_URL"), token="", agent="local")
        for _ in range(3):
            with c.ticket("wide") as t:
                t.answer(200)

    def test_gone(self) -> None:
        c = self.made(env("TEST_GONE_URL"))
        with self.assertRaises(sluice.Unavailable) as caught:
            c.acquire("wide")
        self.assertIn(env("TEST_GONE_URL"), str(caught.exception))
        self.assertIn("sluice serve", caught.exception.hint)
        self.assertEqual(caught.exception.status, 0)
        with self.assertRaises(sluice.Unavailable):
            self.made("unix:/nowhere/sluice.sock").status()

    def test_connections_are_kept(self) -> None:
        with Server(lambda n: b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}") as s:
            c = self.made(s.url)
            for _ in range(5):
                c.status()
            self.assertEqual(s.connections, 1)

    def test_closed_while_idle(self) -> None:
        # Every connection is closed after its first answer, without a word.
        with Server(lambda n: b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}", closes=True) as s:
            c = self.made(s.url)
            for _ in range(5):
                c.status()

    def test_strange_answers(self) -> None:
        for answer, kind in (
            (b"HTTP/1.1 500 Oh\r\nContent-Length: 5\r\n\r\n<htm>", sluice.SluiceError),
            (b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n<htm>", sluice.SluiceError),
            (b"HTTP/1.1 302 Go\r\nLocation: http://x\r\nContent-Length: 0\r\n\r\n", sluice.SluiceError),
            (b"HTTP/1.1 429 No\r\nRetry-After: 7\r\nContent-Length: 2\r\n\r\n[]", sluice.RefusedNow),
            (b"nonsense\r\n\r\n", sluice.Unavailable),
            (b"", sluice.Unavailable),
        ):
            with Server(lambda n, answer=answer: answer, closes=True) as s:
                with self.assertRaises(kind) as caught:
                    self.made(s.url).status()
                if kind is sluice.RefusedNow:
                    self.assertEqual(caught.exception.retry_after, 7)

    def test_never_answered(self) -> None:
        with Server(lambda n: None) as s:
            with self.assertRaises(sluice.TimedOut):
                self.made(s.url, timeout=0.1).status()

    def test_bad_urls(self) -> None:
        for url in ("ftp://x", "127.0.0.1:7979", "http://u:p@h", "unix:", "http://h?q=1"):
            with self.assertRaises(ValueError, msg=url):
                sluice.Client(url)

    def test_after_fork(self) -> None:
        self.client.status()
        pid = os.fork()
        if pid == 0:
            try:
                self.client.status()
                os._exit(0)
            finally:
                os._exit(1)
        self.assertEqual(os.waitpid(pid, 0)[1], 0)
        self.client.status()


class Server:
    """A daemon that misbehaves. answer gets the number of the connection; None never answers."""

    def __init__(self, answer: Any, closes: bool = False) -> None:
        self.answer, self.closes, self.connections = answer, closes, 0
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.url = "http://127.0.0.1:%d" % self.listener.getsockname()[1]
        self.open: List[socket.socket] = []
        self.thread = threading.Thread(target=self.run)

    def run(self) -> None:
        while True:
            try:
                conn, _ = self.listener.accept()
            except OSError:
                return
            self.connections += 1
            self.open.append(conn)
            threading.Thread(target=self.serve, args=(conn, self.connections), daemon=True).start()

    def serve(self, conn: socket.socket, n: int) -> None:
        with conn:
            try:
                while conn.recv(65536):
                    answer = self.answer(n)
                    if answer is not None:
                        conn.sendall(answer)
                        if self.closes:
                            return
            except OSError:
                pass

    def __enter__(self) -> "Server":
        self.thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        try:
            self.listener.shutdown(socket.SHUT_RDWR)  # else accept does not notice
        except OSError:
            pass
        self.listener.close()
        self.thread.join()
        for conn in self.open:
            try:
                conn.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass
