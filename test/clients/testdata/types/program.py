# pyright: strict
"""A program that uses the client in every way that has a type of its own. It is checked, and not run."""

from dataclasses import dataclass
from typing import Callable, List, Optional

import sluice
from sluice.aio import AsyncClient, AsyncTicket


@dataclass
class Response:
    status_code: int
    headers: dict[str, str]


def get(url: str, timeout: float = 1.0) -> Response:
    return Response(200, {"url": url, "timeout": str(timeout)})


with sluice.Client("http://127.0.0.1:7979", agent="indexer") as client:
    with client.ticket("github", wait=30) as ticket:
        verdict: sluice.Verdict = ticket.answer(429, {"retry-after": "1"}, b"body")
        ticket.used({"requests": 1})
    letter = sluice.Letter("POST", "https://h/x", [("accept", "a")], None)
    response: Response = client.do("github", lambda _: get("https://h/x"), policy=sluice.Retry(attempts=3, on=(OSError,)), letter=letter, cls="p1")
    gated: Callable[..., Response] = client.gated("github", get)
    with client.lease("indexer", waits_for=["crawler"]) as lease:
        goes_on: bool = lease.start_new_work
    try:
        client.acquire("github", abort=sluice.Abort())
    except sluice.GaveUp as e:
        sends: int = e.sends
    except sluice.RefusedNow as e:
        after: Optional[float] = e.retry_after
    except sluice.SluiceError as e:
        chain: List[str] = e.chain


async def main() -> int:
    async def send(ticket: AsyncTicket) -> sluice.Answered:
        return sluice.Answered(len(ticket.id), None)

    async with AsyncClient(agent="indexer") as client, client.ticket("github") as ticket:
        await ticket.answer(200)
        return (await client.do("github", send)).status
