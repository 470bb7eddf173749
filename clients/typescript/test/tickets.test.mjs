import assert from "node:assert/strict";
import test from "node:test";

import { Invalid, NotFound, Refused, RefusedNow, SluiceError, Unauthorized } from "../index.mjs";
import { env, made, resource, waiting } from "./common.mjs";

/** The error that a promise rejects with, which must be of a kind. */
async function thrown(kind, promise) {
  let error;
  await assert.rejects(promise, (e) => {
    error = e;
    return e instanceof kind;
  });
  return error;
}

test("grant and close", async (t) => {
  const client = made(t);
  const how = { agent: "ann", class: "p1", user: "me", tool: "t", model: "m", units: { requests: 1 }, ttlMs: 60_000 };
  const ticket = await client.acquire("wide", how);
  assert.deepEqual([ticket.resource, ticket.agent, ticket.class, ticket.ended], ["wide", "ann", "p1", false]);
  assert.deepEqual(ticket.limits.map((l) => [l.name, l.kind, l.limit]), [["inflight", "concurrency", 1000]]);
  const said = await ticket.answer(200, new Headers({ "X-RateLimit-Remaining": "5", "Set-Cookie": "secret" }));
  assert.deepEqual(said, { verdict: "ok", held: false });
  await Promise.all([ticket.close({ requests: 1 }), ticket.close(), ticket.cancel()]);
  assert.equal(ticket.ended, true);
});

test("a body explains a refusal", async (t) => {
  const client = made(t);
  const text = '{"message": "You have exceeded a secondary rate limit"}';
  const bytes = new TextEncoder().encode(text);
  await client.withTicket("hub", async (ticket) => assert.equal((await ticket.answer(403, {})).held, false));
  for (const body of [text, bytes, bytes.buffer, text + "x".repeat(1_000_000)]) {
    await client.withTicket("hub", async (ticket) => {
      assert.deepEqual(await ticket.answer(403, {}, { body }), { verdict: "throttled", held: true });
    });
    await client.resume("hub");
  }
  assert.equal(await client.observe("hub", 403, {}, { body: text }), "throttled");
  await client.resume("hub");
});

test("usage is priced", async (t) => {
  const client = made(t);
  for (const [model, unpriced] of [["claude-opus-4-5", false], ["nobody-knows", true]]) {
    const agent = "payer-" + model;
    await (await client.acquire("models", { agent, model })).close({ input_tokens: 100_000, output_tokens: 50_000 });
    const spent = (await client.status()).budgets.find((b) => b.who === agent);
    assert.ok(spent.used_usd > 0.1, String(spent.used_usd));
    assert.equal(spent.unpriced_usd, unpriced ? spent.used_usd : 0);
    if (!unpriced) assert.ok(Math.abs(spent.used_usd - (0.1 * 5 + 0.05 * 25)) < 1e-9, String(spent.used_usd)); // opus 4.5: 5 and 25 dollars a million
  }
});

test("usage stated only at the end is charged", async (t) => {
  const client = made(t);
  await (await client.acquire("wide", { agent: "late", model: "claude-opus-4-5" })).close({ input_tokens: 100_000 });
  await (await client.acquire("wide", { agent: "late" })).close({ usd: 0.02 });
  const spent = (await client.status()).budgets.find((b) => b.who === "late");
  assert.ok(Math.abs(spent.used_usd - (0.1 * 5 + 0.02)) < 1e-9, String(spent.used_usd));
});

test("stated dollars are dollars", async (t) => {
  const client = made(t);
  await (await client.acquire("models", { agent: "dollars", units: { usd: 0.5 } })).close({ usd: 0.02 });
  const spent = (await client.status()).budgets.find((b) => b.who === "dollars");
  assert.ok(Math.abs(spent.used_usd - 0.02) < 1e-9, String(spent.used_usd));
});

test("wait until it is free", async (t) => {
  const client = made(t);
  const first = await client.acquire("place");
  const coming = client.acquire("place", { agent: "other", waitMs: 60_000 });
  await waiting(client, "place", 1);
  const [why] = await client.why({ resource: "place", agent: "other" });
  assert.deepEqual([why.agent, why.limit], ["other", "inflight"]);
  const refused = await thrown(RefusedNow, client.acquire("place", { waitMs: 0 }));
  assert.equal(refused.status, 429);
  assert.ok(refused.why, refused.message);
  await first.close();
  const second = await coming;
  assert.ok(second.waitedMs > 0);
  await second.renew({ waitMs: 10_000 });
  assert.deepEqual([second.ended, (await resource(client, "place")).in_flight], [false, 1]);
  await second.cancel();
  assert.equal((await resource(client, "place")).in_flight, 0);
});

test("a refusal tells when to come back", async (t) => {
  const client = made(t);
  for (let i = 0; i < 2; i++) await (await client.acquire("hourly")).close();
  for (const waitMs of [0, 50]) {
    const e = await thrown(RefusedNow, client.acquire("hourly", { waitMs }));
    assert.deepEqual([e.status, e.limit, e.name], [429, "hour", "RefusedNow"]);
    assert.ok(e.retryAfterMs > 60_000);
    assert.ok(e.retryAt > new Date());
  }
});

test("refused for good", async (t) => {
  const e = await thrown(Refused, made(t).acquire("hourly", { units: { requests: 99 } }));
  assert.deepEqual([e.status, e.retryAfterMs], [403, undefined]);
});

test("nonsense", async (t) => {
  const client = made(t);
  const e = await thrown(NotFound, client.acquire("nowhere"));
  assert.match(e.message, /nowhere/);
  assert.match(e.hint, /wide/);
  await thrown(Invalid, client.acquire("wide", { class: "p9" }));
  await thrown(Invalid, client.acquire("wide", { waitMs: 3_600_000 }));
  await thrown(NotFound, client.route("cooking"));
  await thrown(TypeError, client.acquire("wide", { waitMs: -1 }));
  await assert.rejects(client.acquire("wide", { waitMs: -1 }), { message: "waitMs must be 0 or more and below 1073741824 milliseconds, got -1" });
});

test("many at once", async (t) => {
  const client = made(t);
  let [now, most, done] = [0, 0, 0];
  const work = (_, i) => client.withTicket("crowd", { agent: `agent-${i % 5}`, waitMs: 120_000 }, async (ticket) => {
    most = Math.max(most, ++now);
    await ticket.answer(200);
    now--;
    done++;
  });
  await Promise.all(Array.from({ length: 120 }, work));
  assert.equal(done, 120);
  assert.ok(most <= 3, `${most} at once`);
  assert.equal((await resource(client, "crowd")).in_flight, 0);
});

test("how withTicket ends a ticket", async (t) => {
  const client = made(t);
  const used = async () => {
    const r = await resource(client, "rule");
    assert.equal(r.in_flight, 0);
    return r.limits.find((l) => l.name === "hour").used;
  };
  const before = await used();
  const oops = () => {
    throw new Error("oops");
  };
  const result = await client.withTicket("rule", async (ticket) => {
    await ticket.answer(200, { "X-RateLimit-Remaining": 5 });
    ticket.used({ requests: 1 });
    return "done";
  });
  assert.equal(result, "done");
  assert.equal(await used(), before + 1);
  await client.withTicket("rule", () => {}); // it may have been sent
  assert.equal(await used(), before + 2);
  await assert.rejects(client.withTicket("rule", oops), /oops/);
  assert.equal(await used(), before + 3);
  await client.withTicket("rule", (ticket) => ticket.cancel());
  assert.equal(await used(), before + 3);
  await assert.rejects(client.withTicket("rule", { explicit: true }, oops), /oops/);
  assert.equal(await used(), before + 3);
  await assert.rejects(client.withTicket("rule", { explicit: true }, (ticket) => {
    ticket.sending();
    oops();
  }), /oops/);
  assert.equal(await used(), before + 4);
});

test("the end of a ticket does not hide what was done", async (t) => {
  const told = [];
  const client = made(t, { onWarning: (e, what) => told.push([e, what]) });
  let kept;
  const result = await client.withTicket("wide", (ticket) => {
    kept = ticket;
    client.close();
    return "done";
  });
  assert.equal(result, "done");
  assert.equal(told.length, 1);
  assert.equal(kept.ended, false);
  await thrown(SluiceError, kept.close());
});

test("abort while it waits", async (t) => {
  const client = made(t);
  const first = await client.acquire("aborted");
  const stop = new AbortController();
  const coming = client.acquire("aborted", { waitMs: 120_000, signal: stop.signal });
  coming.catch(() => {});
  await waiting(client, "aborted", 1);
  const why = new Error("enough");
  stop.abort(why);
  await assert.rejects(coming, (e) => e === why);
  await waiting(client, "aborted", 0);
  await assert.rejects(client.acquire("aborted", { signal: stop.signal }), (e) => e === why);
  await assert.rejects(client.withTicket("aborted", { signal: AbortSignal.timeout(50) }, () => {}), { name: "TimeoutError" });
  await waiting(client, "aborted", 0);
  await first.cancel();
  await (await client.acquire("aborted", { waitMs: 0 })).cancel();
});

test("bad tokens", async (t) => {
  for (const token of ["", "wrong"]) {
    const e = await thrown(Unauthorized, made(t, { token }).status());
    assert.equal(e.status, 401);
    assert.doesNotMatch(e.message, /wrong/);
  }
  assert.throws(() => made(t, { token: "a\r\nb" }), TypeError);
});

test("held to its agent", async (t) => {
  const bob = made(t, { token: env.TEST_LOW_TOKEN, agent: "bob" });
  await bob.withTicket("wide", (ticket) => assert.deepEqual([ticket.agent, ticket.class], ["bob", "p2"]));
  for (const refused of [
    () => bob.acquire("wide", { agent: "eve" }),
    () => bob.acquire("wide", { class: "p0" }),
    () => bob.acquire("wide", { emergency: true }),
    () => bob.pause("wide"),
  ]) {
    assert.equal((await thrown(Refused, refused())).status, 403);
  }
});
