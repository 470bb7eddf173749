"""Runs the first lines of the sections of docs/python.md against the real packages."""

import asyncio
import os
import pathlib
import re
import unittest
from typing import Any, Dict

import sluice

PAGE = pathlib.Path(__file__).parents[2].joinpath("docs", "python.md").read_text()
URL = os.environ["TEST_OPENAI_URL"]  # of a provider that the daemon knows as openai
MESSAGES = [{"role": "user", "content": "hello"}]
CALL = {"model": "gpt-4o", "messages": MESSAGES}
HEADERS = {"Authorization": "Bearer k"}


def line(section: str, n: int = 0) -> str:
    """The nth block of a section."""
    text = re.search(rf"^## {re.escape(section)}\n(.*?)(?=^## |\Z)", PAGE, re.M | re.S)
    assert text, section
    return re.findall(r"```python\n(.*?)```", text[1], re.S)[n]


class Lines(unittest.TestCase):
    def setUp(self) -> None:
        self.client = sluice.Client()
        self.addCleanup(self.client.close)
        self.before = self.state()

    def state(self) -> Dict[str, int]:
        r = next(r for r in self.client.status()["resources"] if r["name"] == "openai")
        return {"sent": r["sent"] or 0, "in_flight": r["in_flight"] or 0, **{limit["name"]: limit["used"] for limit in r["limits"]}}

    def sent(self, n: int, tokens: bool = True) -> None:
        """Checks what has passed the gate since the test began."""
        now = self.state()
        self.assertEqual(now["sent"] - self.before["sent"], n)
        if tokens:
            self.assertGreater(now["out"] - self.before["out"], 0)

    def run_line(self, section: str, n: int = 0, **names: Any) -> Dict[str, Any]:
        space: Dict[str, Any] = {"sluice": sluice, **names}
        exec(line(section, n), space)
        return space

    def test_every_section_begins_with_a_line_that_runs_here(self) -> None:
        sections = re.findall(r"^## (.*)\n\n```python", PAGE, re.M)
        tested = set(re.findall(r'run_line\("([^"]+)"', pathlib.Path(__file__).read_text()))
        self.assertEqual(set(sections), tested)

    def test_sdks(self) -> None:
        import httpx
        from openai import OpenAI

        client = self.run_line("SDKs", httpx=httpx, OpenAI=OpenAI)["client"]
        self.assertTrue(client.chat.completions.create(**CALL).choices)
        for _ in client.chat.completions.create(**CALL, stream=True):
            pass
        left = client.chat.completions.create(**CALL, stream=True)
        next(iter(left))
        left.close()
        self.sent(3)
        client.close()

    def test_sdks_async(self) -> None:
        import httpx
        from openai import AsyncOpenAI

        async def run() -> None:
            client = self.run_line("SDKs", 1, httpx=httpx, AsyncOpenAI=AsyncOpenAI)["client"]
            await asyncio.gather(*(client.chat.completions.create(**CALL) for _ in range(10)))
            async for _ in await client.chat.completions.create(**CALL, stream=True):
                pass
            await client.close()

        asyncio.run(run())
        self.sent(11)

    def test_agents(self) -> None:
        import httpx
        from agents import Agent, Runner, set_default_openai_api, set_default_openai_client, set_tracing_disabled
        from openai import AsyncOpenAI

        set_tracing_disabled(True)
        set_default_openai_api("chat_completions")
        self.run_line("OpenAI Agents", httpx=httpx, AsyncOpenAI=AsyncOpenAI, set_default_openai_client=set_default_openai_client)
        self.assertTrue(asyncio.run(Runner.run(Agent(name="a", model="gpt-4o"), "hello")).final_output)
        self.sent(1)

    def test_httpx(self) -> None:
        import httpx

        client = self.run_line("httpx", httpx=httpx)["client"]
        self.assertEqual(client.post(URL + "/chat/completions", json=CALL, headers=HEADERS).status_code, 200)
        self.sent(1)
        client.close()

    def test_httpx2(self) -> None:
        import httpx2
        from openai import OpenAI

        client = OpenAI(http_client=httpx2.Client(transport=sluice.httpx2.Transport()))
        client.chat.completions.create(**CALL)
        self.sent(1)
        client.close()

    def test_requests(self) -> None:
        import requests

        with requests.Session() as session:
            exec(line("requests").replace("https://", "http://"), {"sluice": sluice, "session": session})
            self.assertEqual(session.post(URL + "/chat/completions", json=CALL, headers=HEADERS).status_code, 200)
            with session.post(URL + "/chat/completions", json={**CALL, "stream": True}, headers=HEADERS, stream=True) as response:
                self.assertGreater(len(list(response.iter_lines())), 5)
        self.sent(2)
        self.run_line("requests", session=requests.Session())

    def test_aiohttp(self) -> None:
        import aiohttp

        async def run() -> None:
            space = self.run_line("aiohttp", aiohttp=aiohttp)
            async with space["session"] as session:
                async with session.post(URL + "/chat/completions", json=CALL, headers=HEADERS) as response:
                    self.assertEqual((await response.json())["object"], "chat.completion")
                async with session.post(URL + "/chat/completions", json={**CALL, "stream": True}, headers=HEADERS) as response:
                    self.assertGreater(len([piece async for piece in response.content]), 5)

        asyncio.run(run())
        self.sent(2)

    def test_litellm(self) -> None:
        import litellm

        self.run_line("LiteLLM", litellm=litellm)
        self.addCleanup(setattr, litellm, "callbacks", [])
        how = {"model": "openai/gpt-4o", "messages": MESSAGES, "api_base": URL, "api_key": "k"}
        litellm.completion(**how)
        asyncio.run(self.acompletion(how))
        self.until(lambda: self.state()["in_flight"] <= self.before["in_flight"])
        self.sent(2)

    async def acompletion(self, how: Dict[str, Any]) -> None:
        import litellm

        await litellm.acompletion(**how)
        for _ in range(300):  # its loggers run in the background
            if not sluice.litellm.handler._tickets:
                return
            await asyncio.sleep(0.1)

    def until(self, come: Any) -> None:
        import threading

        for _ in range(300):
            if come():
                return
            threading.Event().wait(0.1)
        self.fail("in vain")

    def test_langchain(self) -> None:
        from langchain_openai import ChatOpenAI

        model = self.run_line("LangChain", ChatOpenAI=ChatOpenAI)["model"]
        self.assertTrue(model.invoke("hello").content)
        asyncio.run(model.ainvoke("hello"))
        self.sent(2, tokens=False)
        self.assertFalse(sluice.langchain.RateLimiter("none-left").acquire(blocking=False) and sluice.langchain.RateLimiter("none-left").acquire(blocking=False))

    def test_llamaindex(self) -> None:
        from llama_index.core.llms.mock import MockLLM

        def mock(model: str, rate_limiter: Any) -> MockLLM:
            llm = MockLLM()
            llm.rate_limiter = rate_limiter
            return llm

        llm = self.run_line("LlamaIndex", OpenAI=mock)["llm"]
        llm.complete("hello")
        asyncio.run(llm.acomplete("hello"))  # which asks twice: this model calls complete
        self.sent(3, tokens=False)

    def test_pydantic_ai(self) -> None:
        from pydantic_ai import Agent
        from pydantic_ai.models.concurrency import ConcurrencyLimitedModel

        model = self.run_line("Pydantic AI", ConcurrencyLimitedModel=ConcurrencyLimitedModel)["model"]
        os.environ["OPENAI_BASE_URL"] = URL
        Agent(model).run_sync("hello")
        self.until(lambda: self.state()["in_flight"] <= self.before["in_flight"])
        self.sent(1, tokens=False)

    def test_celery(self) -> None:
        import celery
        from celery.contrib.testing.worker import start_worker

        app = celery.Celery("test", broker="memory://", backend="cache+memory://")
        done = []
        space = self.run_line("Celery", app=app)
        self.assertEqual(space["call"].resource, "openai")

        @app.task(base=sluice.celery.Task, resource="single", bind=True, name="hold")
        def hold(self: Any, n: int) -> int:
            self.ticket.answer(200)
            done.append(n)
            return n

        with start_worker(app, perform_ping_check=False, pool="solo"):
            held = self.client.acquire("single")
            results = [hold.delay(n) for n in range(2)]
            other = space["call"].delay("x")
            other.get(timeout=60)  # the worker is not blocked
            self.assertEqual(done, [])
            held.close()
            self.assertEqual([r.get(timeout=60) for r in results], [0, 1])

    def test_temporal(self) -> None:
        from temporalio import activity
        from temporalio.testing import ActivityEnvironment
        from temporalio.worker import Worker

        @activity.defn
        async def call(prompt: str) -> str:
            return prompt

        made: Dict[str, Any] = {}
        self.run_line("Temporal", Worker=lambda client, **how: made.update(how), client=None, call=call)
        self.assertTrue(issubclass(Worker, object) and made["interceptors"])

        async def run() -> None:
            from temporalio.exceptions import ApplicationError
            from temporalio.worker import ActivityInboundInterceptor

            class Last(ActivityInboundInterceptor):
                async def execute_activity(self, input: Any) -> Any:
                    return "done"

            inbound = sluice.temporal.Interceptor("single").intercept_activity(Last(None))  # type: ignore[arg-type]
            env = ActivityEnvironment()
            self.assertEqual(await env.run(inbound.execute_activity, None), "done")
            held = self.client.acquire("single")
            with self.assertRaises(ApplicationError) as caught:
                await env.run(inbound.execute_activity, None)
            self.assertGreater(caught.exception.next_retry_delay.total_seconds(), 0)  # type: ignore[union-attr]
            held.close()

        asyncio.run(run())


if __name__ == "__main__":
    unittest.main()
