import asyncio
import unittest

import sluice
from sluice.aio import AsyncClient

from .common import env


class Async(unittest.IsolatedAsyncioTestCase):
    async def test_tickets(self) -> None:
        async with AsyncClient() as c:
            async with c.ticket("wide") as t:
                self.assertEqual((await t.answer(200)).verdict, "ok")
            self.assertTrue(t.ticket.ended)
            with self.assertRaises(sluice.NotFound):
                await c.acquire("nowhere")
            self.assertEqual((await c.heartbeat("looper")).light, "green")
            await c.leave("looper")
            self.assertEqual(await c.call(c.client.why, "wide"), [])

    async def test_more_wait_than_there_are_threads(self) -> None:
        async with AsyncClient(waiting=4) as c:

            async def work() -> None:
                async with c.ticket("tasks", wait=120) as t:
                    await t.answer(200)

            await asyncio.wait_for(asyncio.gather(*(work() for _ in range(40))), 120)

    async def test_cancelled_while_it_waits(self) -> None:
        async with AsyncClient() as c:
            first = await c.acquire("aborted")
            task = asyncio.create_task(c.acquire("aborted", wait=120))
            await self.until(c, 1)
            task.cancel()
            with self.assertRaises(asyncio.CancelledError):
                await task
            await self.until(c, 0)
            await first.cancel()
            await (await c.acquire("aborted", wait=0)).cancel()

    async def until(self, c: AsyncClient, n: int) -> None:
        async def come() -> None:
            while len(await c.call(c.client.why, "aborted")) != n:
                await asyncio.sleep(0.02)

        await asyncio.wait_for(come(), 30)

    async def test_gone(self) -> None:
        async with AsyncClient(env("TEST_GONE_URL")) as c:
            with self.assertRaises(sluice.Unavailable):
                await c.status()
