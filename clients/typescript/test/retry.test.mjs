import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import test from "node:test";

import { Client, GaveUp, Retry } from "../index.mjs";
import { hintOf } from "../lib/retry.js";
import { made } from "./common.mjs";

// The table that Go's Do and the Python client read, too.
const table = JSON.parse(readFileSync(new URL("../../../retry/testdata/cases.json", import.meta.url), "utf8"));

function policyOf({ attempts, deadline_ms, base_ms, cap_ms, windows }) {
  const given = { attempts, deadlineMs: deadline_ms, baseMs: base_ms, capMs: cap_ms, windows };
  return new Retry(Object.fromEntries(Object.entries(given).filter(([, v]) => v !== undefined)));
}

test("the table of decisions", () => {
  assert.ok(table.next.length > 20);
  for (const { name, policy, random, failure: f, want } of table.next) {
    const got = policyOf(policy).next({ sent: f.sent, elapsedMs: f.elapsed_ms, class: f.class, hintMs: f.hint_ms, held: f.held }, () => random);
    assert.deepEqual([got.give, got.reason], [want.give ?? false, want.reason], name);
    if (!got.give) assert.ok(Math.abs(got.waitMs - want.wait_ms) < 0.001, `${name}: ${got.waitMs}`);
  }
});

test("the table of sends", async () => {
  for (const { name, verdicts, policy, want } of table.do) {
    let sends = 0;
    class Fake extends Client {
      async withTicket(resource, how, fn) {
        assert.equal(how.retry ?? false, sends > 0, name);
        return fn({ answer: async () => ({ verdict: verdicts[Math.min(sends, verdicts.length) - 1], held: false }) });
      }
      async _sleep() {}
    }
    const client = new Fake({ url: "http://127.0.0.1:1", token: "" });
    let outcome = "ok";
    try {
      await client.do("api", { policy: policyOf(policy) }, () => ({ status: 200, sends: ++sends }));
    } catch (e) {
      assert.ok(e instanceof GaveUp, `${name}: ${e}`);
      outcome = e.reason;
    }
    assert.deepEqual({ sends, outcome }, want, name);
    await client.close();
  }
});

test("hints", () => {
  const now = Date.parse("2026-03-04T12:00:00Z");
  for (const [headers, want] of [
    [{}, undefined], [undefined, undefined], [{ "Retry-After": "2.5" }, 2500], [new Headers({ "retry-after-ms": "250", "Retry-After": "9" }), 250],
    [{ "Retry-After": "soon" }, undefined], [{ "Retry-After": "-1" }, undefined], [{ "Retry-After": "1e3" }, undefined],
    [{ "Retry-After": "99999999" }, undefined], [{ "Retry-After": "100000" }, 86_400_000], [{ "Retry-After": "Wed, 04 Mar 2026 12:01:30 GMT" }, 90_000],
    [{ "Retry-After": "Wed, 04 Mar 2026 12:01:30 GMT", Date: "Wed, 04 Mar 2026 12:01:00 GMT" }, 30_000],
    [{ "Retry-After": "Fri, 31 Dec 9999 23:59:59 GMT" }, undefined],
  ]) {
    assert.equal(hintOf(headers, now), want, JSON.stringify(headers));
  }
});

test("a fetch of one's own", async (t) => {
  const client = made(t);
  const seen = [];
  const request = async (url) => {
    seen.push(url);
    return new Response("{}", { status: seen.length === 1 ? 500 : 200 });
  };
  const policy = { baseMs: 1, capMs: 1 };
  assert.equal((await client.gated("wide", { policy }, request)("/x")).status, 200);
  assert.deepEqual(seen, ["/x", "/x"]);
  const stuck = client.gated("wide", { policy: { ...policy, attempts: 2 } }, async () => new Response("no", { status: 500 }));
  assert.equal(await (await stuck()).text(), "no");
});

test("errors of the request", async (t) => {
  const client = made(t);
  const broken = async () => { throw new TypeError("fetch failed"); };
  await assert.rejects(client.do("wide", broken), TypeError);
  const policy = { attempts: 2, baseMs: 1, on: (e) => e instanceof TypeError };
  await assert.rejects(client.do("wide", { policy }, broken), (e) => e instanceof GaveUp && e.reason === "attempts" && e.sends === 2 && e.cause instanceof TypeError);
});
