import assert from "node:assert/strict";
import test from "node:test";

import { GaveUp } from "../index.mjs";
import { letterOf, plainLetter } from "../lib/letter.js";
import { made } from "./common.mjs";

const key = "the-canary-of-a-key";
const headers = { Authorization: "Bearer " + key, "Content-Type": "text/plain" };

test("secrets stay here", () => {
  assert.deepEqual(plainLetter({ method: "post", url: "https://h/v1/x?a=1&key=" + key, headers, body: "canary" }), {
    method: "POST", path: "/v1/x?a=1", headers: { "content-type": "text/plain" }, left_out: ["authorization", "?key"], body: "canary",
  });
  for (const body of [null, "it holds " + key, "x".repeat(1_000_000), new Blob(["x"])]) {
    const got = plainLetter({ method: "GET", url: "https://h", headers, body });
    assert.deepEqual([got.path, got.body, got.body_lost], ["/", undefined, true]);
    assert.ok(!JSON.stringify(got).includes(key));
  }
  assert.deepEqual(plainLetter({ method: "GET", url: "/", body: Uint8Array.of(255) }).body, { base64: "/w==" });
});

test("calls of fetch", () => {
  assert.deepEqual(letterOf(["https://h/x", { method: "POST", headers, body: "b" }]), { method: "POST", url: "https://h/x", headers, body: "b" });
  const { method, url, body } = letterOf([new Request("https://h/x", { method: "POST", body: "b" })]);
  assert.deepEqual([method, url, body], ["POST", "https://h/x", null]);
  assert.equal(letterOf([{}]), undefined);
});

test("what is given up is kept", async (t) => {
  const client = made(t);
  const policy = { attempts: 2, baseMs: 1, capMs: 1 };
  const request = async () => new Response("no", { status: 500 });
  const call = client.gated("letters", { policy, letter: true, agent: "typescript" }, request);
  assert.equal((await call("http://127.0.0.1/v1/x?a=1", { method: "POST", headers, body: "canary-of-a-body" })).status, 500);
});

test("a resource that keeps none", async (t) => {
  const told = [];
  const client = made(t, { onWarning: (e, what) => told.push(`${what}: ${e.message}`) });
  const letter = { method: "POST", url: "http://127.0.0.1/x", body: "canary-of-a-body" };
  const done = client.do("wide", { policy: { attempts: 1 }, letter }, async () => new Response("no", { status: 500 }));
  await assert.rejects(done, GaveUp);
  assert.match(told[0], /keeps no dead letters/);
});
