// A program that has fetch and AbortSignal, of a browser's library or of @types/node. It is compiled, and not run.
import { Client, type Letter } from "@sluicehq/client";

const client = new Client();
const cut = new AbortController();
const signal: AbortSignal = cut.signal;
const ticket = await client.acquire("github", { signal });
const fetched: Response = await client.gated("github", { class: "p1", letter: true, signal })("https://h/x", { method: "POST" });
await ticket.answer(fetched.status, fetched.headers, { signal });
export const letter: Letter = { method: "POST", url: "https://h/x", headers: new Headers(), body: new URLSearchParams() };
// @ts-expect-error: it is no signal
await client.status({ signal: "now" });
