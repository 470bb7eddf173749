// A program that uses the client in every way that has a type of its own. It is compiled, and not run.
import { Client, GaveUp, Refused, RefusedNow, Retry, SluiceError, type Letter, type Status, type Ticket } from "@sluicehq/sluice";

const client = new Client({ url: "https://sluice.internal", tls: { ca: "PEM", cert: new Uint8Array(), key: [{ pem: "PEM", passphrase: "x" }] } });
const text: string = await client.withTicket("github", { waitMs: 1_000 }, async (ticket: Ticket) => {
  await ticket.answer(429, new Map([["retry-after", "1"]]), { body: new Uint8Array() });
  await ticket.answer(200, { "retry-after": 1, vary: ["a", "b"], date: undefined });
  ticket.used({ requests: 1 });
  return ticket.id;
});
const letter: Letter = { method: "POST", url: "https://h/x", headers: { accept: "a" }, body: text };
const response = await client.do("github", { class: "p1", policy: new Retry({ attempts: 3 }), letter }, () => ({ status: 200, headers: {}, more: true }));
const more: boolean = response.more;
const called: Promise<{ status: number }> = client.gated("github", async (n: number) => ({ status: n }))(200);
await client.withLease("indexer", { waitsFor: ["crawler"] }, (lease) => lease.startNewWork);
const status: Status = await client.status();
const left: number | null | undefined = status.resources[0]?.limits[0]?.remaining;
try {
  await client.acquire("github");
} catch (e) {
  if (e instanceof RefusedNow) e.retryAfterMs satisfies number | undefined;
  if (e instanceof GaveUp) e.sends satisfies number;
  if (e instanceof Refused || e instanceof SluiceError) e.chain satisfies string[];
}
// @ts-expect-error: there is no such option
await client.acquire("github", { wait: 1 });
// @ts-expect-error: a ticket comes from a client
new Ticket();
export { called, left, more };
