"""200 calls at once behind one gate, half with LangChain and half with the SDK of OpenAI, in a process of its own each."""

import asyncio
import sys

import httpx
from langchain_openai import ChatOpenAI
from openai import AsyncOpenAI

import sluice

N = 100


def transport() -> httpx.AsyncClient:
    return httpx.AsyncClient(transport=sluice.httpx.AsyncTransport(), timeout=600)


async def langchain() -> None:
    model = ChatOpenAI(model="gpt-4o", http_async_client=transport(), api_key="k", default_headers={"X-Agent-Id": "langchain"})  # type: ignore[arg-type]
    await asyncio.gather(*(model.ainvoke("hello") for _ in range(N)))


async def openai() -> None:
    client = AsyncOpenAI(http_client=transport(), api_key="k", default_headers={"X-Agent-Id": "openai"})
    await asyncio.gather(*(client.chat.completions.create(model="gpt-4o", messages=[{"role": "user", "content": "hello"}]) for _ in range(N)))


asyncio.run({"langchain": langchain, "openai": openai}[sys.argv[1]]())
