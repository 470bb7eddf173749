import asyncio
import gzip
import json
import threading
import unittest
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Dict, List, Optional, Tuple

from sluice import Client, Gate, NotFound, RefusedNow, Unavailable
from sluice._exchange import Outline, Seen, Turn, Who, comes_at_once, opening
from sluice._gate import Reading, refusal

from .common import Case, env

CHUNK = json.dumps({"object": "chat.completion.chunk", "model": "gpt-4o", "choices": [{"index": 0, "delta": {"content": "a few words more "}}]})
WHOLE = {"object": "chat.completion", "model": "gpt-4o", "choices": [], "usage": {"prompt_tokens": 100, "completion_tokens": 50, "total_tokens": 150}}
STREAM = f"data: {CHUNK}\n\n" * 10
CALL = json.dumps({"model": "gpt-4o", "max_tokens": 100, "messages": [{"role": "user", "content": "hello"}]}).encode()
STREAMED = CALL.replace(b"{", b'{"stream": true, ', 1)


class Provider:
    """A provider whose responses a test states: status, headers, body."""

    def __init__(self, test: unittest.TestCase) -> None:
        provider = self
        self.responses: List[Tuple[int, Dict[str, str], bytes]] = []
        self.got: List[str] = []

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self) -> None:
                self.rfile.read(int(self.headers.get("Content-Length") or 0))
                provider.got.append(self.path)
                status, headers, body = provider.responses.pop(0)
                self.send_response(status)
                for name, value in {**headers, "Content-Length": str(len(body))}.items():
                    self.send_header(name, value)
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, format: str, *args: Any) -> None:
                pass

        server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        test.addCleanup(thread.join)
        test.addCleanup(server.server_close)
        test.addCleanup(server.shutdown)
        self.url = f"http://127.0.0.1:{server.server_address[1]}/v1/chat/completions"


class Plain:
    """A carrier on the library of Python, as adapters are."""

    def __init__(self, url: str, status: Optional[BaseException] = None) -> None:
        self.url, self.fails = url, status
        self.dropped = 0

    def send(self) -> Any:
        import urllib.error
        import urllib.request

        if self.fails is not None:
            raise self.fails
        try:
            return urllib.request.urlopen(urllib.request.Request(self.url, CALL, {"Content-Type": "application/json"}))
        except urllib.error.HTTPError as e:
            return e

    def seen(self, response: Any) -> Seen:
        return Seen(response.status, response.headers)

    def read(self, response: Any) -> bytes:
        with response:
            response.body = response.read()
        return bytes(response.body)

    def drop(self, response: Any) -> None:
        self.dropped += 1
        response.close()

    def unsent(self, error: BaseException) -> bool:
        return isinstance(error, ConnectionRefusedError)


class AsyncPlain(Plain):
    async def send(self) -> Any:
        return await asyncio.get_running_loop().run_in_executor(None, super().send)

    async def read(self, response: Any) -> bytes:  # type: ignore[override]
        return super().read(response)

    async def drop(self, response: Any) -> None:  # type: ignore[override]
        super().drop(response)


def outline(url: str, once: bool = False, call: bytes = CALL) -> Outline:
    return Outline("POST", url, {"Content-Type": "application/json", "Authorization": "Bearer a-secret-key"}, call, once)


class Gated(Case):
    """Against a real daemon, with one source for both kinds of programs."""

    def setUp(self) -> None:
        super().setUp()
        self.provider = Provider(self)
        self.gate = Gate("chats", client=self.client, agent="gated")
        self.addCleanup(self.gate.close)

    def both(self, carrier: Plain, call: bytes = CALL) -> Tuple[Any, Optional[Reading]]:
        return self.gate.send(outline(carrier.url, call=call), carrier)

    def abroad(self, carrier: AsyncPlain, *pieces: bytes, how: str = "complete") -> Any:
        async def run() -> Any:
            response, rest = await self.gate.asend(outline(carrier.url, call=STREAMED if pieces else CALL), carrier)
            if rest is not None:
                for piece in pieces:
                    await rest.afeed(piece)
                await rest.aend(how)
                response.close()
            return response

        return asyncio.run(run())

    def used(self) -> Dict[str, int]:
        r = self.resource("chats")
        return {**{limit["name"]: limit["used"] for limit in r["limits"]}, "in_flight": r["in_flight"], "sent": r["sent"] or 0, "retried": r["retried"] or 0}

    def grown(self, before: Dict[str, int]) -> Dict[str, int]:
        return {name: n - before.get(name, 0) for name, n in self.used().items()}

    def settled(self, before: Dict[str, int], tokens: Tuple[int, int]) -> None:
        """Waits until one request has used so many tokens and is over. The daemon may tell its store a moment later."""
        grown: Dict[str, int] = {}

        def over() -> bool:
            grown.update(self.grown(before))
            return grown["sent"] == 1 and grown["in_flight"] == 0 and tokens[0] <= grown["tokens"] <= tokens[1]

        try:
            self.until("the usage is settled", over)
        except AssertionError:
            self.fail(f"not settled as expected: {grown}, not {tokens}")

    def test_a_whole_response(self) -> None:
        for kind in ("plain", "gzip"):
            for asynchronous in (False, True):
                before, body = self.used(), json.dumps(WHOLE).encode()
                headers = {"Content-Type": "application/json"}
                if kind == "gzip":
                    body, headers["Content-Encoding"] = gzip.compress(body), "gzip"
                self.provider.responses = [(200, headers, body)]
                if asynchronous:
                    response = self.abroad(AsyncPlain(self.provider.url))
                else:
                    response, rest = self.both(Plain(self.provider.url))
                    self.assertIsNone(rest)
                self.assertEqual(response.body, body)
                self.settled(before, tokens=(50, 50))

    def test_a_stream(self) -> None:
        for asynchronous in (False, True):
            for how in ("complete", "left"):
                before = self.used()
                self.provider.responses = [(200, {"Content-Type": "text/event-stream"}, STREAM.encode())]
                pieces = [STREAM.encode()[i : i + 100] for i in range(0, len(STREAM), 100)]
                if asynchronous:
                    self.abroad(AsyncPlain(self.provider.url), *pieces, how=how)
                else:
                    response, rest = self.both(Plain(self.provider.url), STREAMED)
                    assert rest is not None
                    for piece in pieces:
                        rest.feed(piece)
                    rest.end(how)
                    rest.end("complete")  # tells nothing
                    response.close()
                self.settled(before, tokens=(51, 70))  # 57 words, and not the 50 or 100 that were estimated

    def test_the_daemon_says_when_to_send_again(self) -> None:
        for asynchronous in (False, True):
            self.provider.got.clear()
            self.provider.responses = [(429, {"Content-Type": "application/json", "Retry-After": "1"}, b"{}"), (200, {"Content-Type": "application/json"}, json.dumps(WHOLE).encode())]
            carrier = AsyncPlain(self.provider.url) if asynchronous else Plain(self.provider.url)
            response = self.abroad(carrier) if isinstance(carrier, AsyncPlain) else self.both(carrier)[0]
            self.assertEqual((response.status, carrier.dropped, len(self.provider.got)), (200, 1, 2))

    def test_a_retry_of_an_sdk(self) -> None:
        before = self.used()
        for n in ("0", "1"):
            self.provider.responses = [(200, {"Content-Type": "application/json"}, json.dumps(WHOLE).encode())]
            request = Outline("POST", self.provider.url, {"Content-Type": "application/json", "x-stainless-retry-count": n}, CALL)
            self.gate.send(request, Plain(self.provider.url))
        self.until("both are counted", lambda: (self.grown(before)["sent"], self.grown(before)["retried"]) == (2, 1))
        self.until("both are over", lambda: self.used()["in_flight"] == 0)

    def test_errors(self) -> None:
        before = self.used()
        with self.assertRaises(ConnectionRefusedError):
            self.both(Plain(self.provider.url, ConnectionRefusedError()))
        self.assertEqual(self.grown(before)["sent"], 0)
        with self.assertRaises(KeyboardInterrupt):
            self.both(Plain(self.provider.url, KeyboardInterrupt()))
        once = outline(self.provider.url, once=True)
        with self.assertRaises(ConnectionResetError):
            self.gate.send(once, Plain(self.provider.url, ConnectionResetError()))
        self.until("all are over", lambda: self.used()["in_flight"] == 0)

    def test_refusals(self) -> None:
        full = Gate("gone", client=self.client, wait=0)
        with self.assertRaises(NotFound):
            full.send(outline(self.provider.url), Plain(self.provider.url))
        short = Gate("single", client=self.client, wait=0.01)
        with self.client.ticket("single"):
            with self.assertRaises(RefusedNow) as caught:
                short.send(outline(self.provider.url), Plain(self.provider.url))
            with self.assertRaises(RefusedNow):
                asyncio.run(short.asend(outline(self.provider.url), AsyncPlain(self.provider.url)))
        status, headers, body = refusal(caught.exception)
        self.assertEqual((status, headers["x-sluice-refused"]), (429, "1"))
        self.assertTrue(json.loads(body)["error"]["message"].startswith("sluice: "), body)

    def test_an_address_without_a_resource(self) -> None:
        anywhere = Gate(client=self.client)
        for _ in range(2):
            self.provider.responses.append((200, {"Content-Type": "application/json"}, b"{}"))
        with self.assertLogs("sluice", "WARNING") as told:
            response, rest = anywhere.send(outline(self.provider.url), Plain(self.provider.url))
        self.assertEqual((response.status, rest, len(told.output)), (200, None, 1))
        response.close()
        self.abroad(AsyncPlain(self.provider.url))

    def test_no_daemon(self) -> None:
        gone = Gate("chats", client=self.made(env("TEST_GONE_URL"), token=""))
        with self.assertRaises(Unavailable):
            gone.send(outline(self.provider.url), Plain(self.provider.url))
        with self.assertRaises(Unavailable):
            asyncio.run(gone.asend(outline(self.provider.url), AsyncPlain(self.provider.url)))
        self.assertEqual(self.provider.got, [])

    def test_through_a_socket(self) -> None:
        gate = Gate("chats", client=Client(env("TEST_SOCKET_URL")))
        self.provider.responses = [(200, {"Content-Type": "application/json"}, json.dumps(WHOLE).encode())]
        response, _ = asyncio.run(gate.asend(outline(self.provider.url), AsyncPlain(self.provider.url)))
        self.assertEqual(response.status, 200)
        gate.client.close()


class Told(unittest.TestCase):
    """What is told of a request and its response."""

    def test_no_secrets(self) -> None:
        said = opening(Who(agent="a", wait=1.5), outline("https://h/v1/chat/completions?x=1#y"))
        self.assertEqual((said["headers"], said["url"], said["wait_ms"]), ({"content-type": "application/json"}, "https://h/v1/chat/completions?x=1", 1500))
        self.assertEqual(json.loads(said["body"])["model"], "gpt-4o")
        form = Outline("POST", "https://h/", {"Content-Type": "multipart/form-data"}, b"x")
        self.assertNotIn("body", opening(Who(), form))
        with self.assertRaises(ValueError):
            Gate(wait=-1)

    def test_what_is_read_first(self) -> None:
        for status, headers, want in (
            (200, {"Content-Type": "text/event-stream"}, False),
            (200, {"Content-Type": "application/json; charset=utf-8"}, True),
            (200, {"Content-Type": "application/json", "Content-Length": "99999999"}, False),
            (200, {"Content-Type": "application/octet-stream"}, False),
            (500, {}, True),
        ):
            self.assertEqual(comes_at_once(Seen(status, headers)), want, headers)

    def test_pieces_are_small(self) -> None:
        for headers, body in (({}, b"x" * 3_000_000), ({"Content-Encoding": "gzip"}, gzip.compress(b"\x01" * 3_000_000)), ({"Content-Encoding": "br"}, b"x" * 3_000_000)):
            turn = Turn("/v1/exchanges/1", Seen(200, {"Content-Type": "text/event-stream", **headers}))
            calls = [call for i in range(0, len(body), 65536) for call in turn.feed(body[i : i + 65536])] + turn.end("complete")
            self.assertTrue(all(len(json.dumps(call.body)) < 4 << 20 for call in calls))
            self.assertEqual([call.body and call.body.get("ended") for call in calls][-1], "complete")
            said = sum(len((call.body or {}).get("body", "")) for call in calls)
            self.assertEqual(said, 0 if "br" in str(headers) else 3_000_000)
            self.assertEqual(turn.end("left"), [])
