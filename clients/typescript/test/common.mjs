// Tests run against real daemons. test/clients starts them and says where they are.
import { Client } from "../index.mjs";

export const env = process.env;

/** A client of the daemon that wants tokens, closed when the test ends. */
export function made(t, options) {
  const client = new Client(options);
  t.after(() => client.close());
  return client;
}

const pause = (ms) => new Promise((resolve) => setTimeout(resolve, ms));

/** Waits for something that comes by itself, soon. */
export async function until(what, come) {
  const end = performance.now() + 30_000;
  for (;;) {
    const got = await come();
    if (got) return got;
    if (performance.now() > end) throw new Error("in vain: " + what);
    await pause(20);
  }
}

export const waiting = (client, resource, n) =>
  until(`${n} wait for ${resource}`, async () => (await client.why({ resource })).length === n);

export const resource = async (client, name) => (await client.status()).resources.find((r) => r.name === name);

export const agent = async (client, name) => (await client.status()).agents.find((a) => a.name === name);
