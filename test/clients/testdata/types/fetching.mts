// A program that has fetch and AbortSignal, of a browser's library or of @types/node. It is compiled, and not run.
import { Client, sluiceFetch, sluiceInterceptor, sluiceMiddleware, sluiceProcessor, type Letter, type Ticket } from "@sluicehq/sluice";

const client = new Client();
const cut = new AbortController();
const signal: AbortSignal = cut.signal;
const ticket = await client.acquire("github", { signal });
const fetched: Response = await client.gated("github", { class: "p1", letter: true, signal })("https://h/x", { method: "POST" });
await ticket.answer(fetched.status, fetched.headers, { signal });
export const letter: Letter = { method: "POST", url: "https://h/x", headers: new Headers(), body: new URLSearchParams() };
// @ts-expect-error: it is no signal
await client.status({ signal: "now" });
export const send: typeof fetch = sluiceFetch({ resource: "github", class: "p1", client, start: false });
export const other: Response = await sluiceFetch("github")(new Request("https://h/x"), { signal });
export const wraps = sluiceMiddleware({ units: { tokens: 100 } }).wrapGenerate;
interface Job {
  data: { api: string };
  moveToDelayed(timestamp: number, token?: string): Promise<void>;
}
export const work: (job: Job, token?: string) => Promise<number> = sluiceProcessor({ resource: (job: Job) => job.data.api }, async (job, token, _signal, ticket: Ticket) => {
  await ticket.answer(200);
  return job.data.api.length + (token?.length ?? 0);
});
export const activities = [sluiceInterceptor({ resource: (info) => info.activityType })];
// @ts-expect-error: a worker's turn needs a resource
sluiceProcessor({}, async () => 1);
