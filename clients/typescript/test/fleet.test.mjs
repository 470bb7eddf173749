import assert from "node:assert/strict";
import net from "node:net";
import { readFileSync } from "node:fs";
import test from "node:test";

import * as all from "../index.mjs";
import { Client, Refused, RefusedNow, SluiceError, TimedOut, Unavailable } from "../index.mjs";
import { agent, env, made, resource, until } from "./common.mjs";

test("heartbeat and leave", async (t) => {
  const client = made(t);
  const s = await client.heartbeat("walker/1", { class: "p1", user: "me", machine: "box", waitsFor: ["other"] });
  assert.deepEqual([s.light, s.startNewWork, s.chain], ["green", true, []]);
  const a = await agent(client, "walker/1");
  assert.deepEqual([a.class, a.user, a.machine, a.waits_for], ["p1", "me", "box", ["other"]]);
  await client.leave("walker/1", { machine: "box" });
  assert.equal(await agent(client, "walker/1"), undefined);
});

test("an agent that moves is told where it was", async (t) => {
  const client = made(t);
  await client.heartbeat("mover", { machine: "here" });
  assert.equal((await client.heartbeat("mover", { machine: "there" })).takenOverBy, "");
  const moved = await client.heartbeat("mover", { machine: "here" });
  assert.deepEqual([moved.takenOverBy, moved.allocated], ["there", null]);
  assert.equal((await agent(client, "mover")).machine, "there");
  await client.leave("mover", { machine: "there" });
});

test("lease", async (t) => {
  const client = made(t);
  await client.withLease("keeper", { class: "p2", everyMs: 50 }, async (lease) => {
    assert.equal(lease.startNewWork, true);
    const first = lease.standing;
    assert.ok(await agent(client, "keeper"));
    await until("another heartbeat", () => lease.standing !== first);
    await lease.update({ waitsFor: ["a", "b"] });
    assert.deepEqual((await agent(client, "keeper")).waits_for, ["a", "b"]);
    assert.equal(lease.error, undefined);
  });
  assert.equal(await agent(client, "keeper"), undefined);
});

test("a lease that is refused", async (t) => {
  const bob = made(t, { token: env.TEST_LOW_TOKEN });
  await assert.rejects(bob.withLease("eve", () => assert.fail("it was taken")), Refused);
  await assert.rejects(bob.lease("bob", { everyMs: 0 }), TypeError);
});

test("a lease survives a failure", async (t) => {
  const told = [];
  const client = made(t, { onWarning: (e, what) => told.push(what) });
  const lease = await client.lease("lonely", { everyMs: 20 });
  client.close();
  await until("an error", () => lease.error);
  await lease.close();
  assert.ok(told.includes("heartbeat") && told.includes("leaving"), `${told}`);
  await made(t).leave("lonely");
});

test("pause and resume", async (t) => {
  const client = made(t);
  await client.pause("paused", { forMs: 60_000, reason: "hands off" });
  assert.equal((await resource(client, "paused")).pause_reason, "hands off");
  await assert.rejects(client.acquire("paused", { waitMs: 0 }), (e) => e instanceof RefusedNow && e.retryAfterMs > 1000);
  await client.resume("paused");
  await (await client.acquire("paused", { waitMs: 60_000 })).cancel();
});

test("observe and others", async (t) => {
  const client = made(t);
  assert.equal(await client.observe("throttled", 429, { "Retry-After": "30" }), "throttled");
  assert.notEqual((await resource(client, "throttled")).paused_until, null);
  const r = await client.route("simple");
  assert.deepEqual([r.model, r.resource, r.waitMs], ["small", "wide", 0]);
  await client.heartbeat("pooled");
  assert.ok((await client.pool("wide")).allocations.pooled);
  await client.leave("pooled");
  assert.ok(Array.isArray((await client.report({ since: "7d" })).resources));
});

test("without tokens, and over a socket", async (t) => {
  for (const url of [env.TEST_OPEN_URL, env.TEST_SOCKET_URL]) {
    const client = made(t, { url, token: "", agent: "opener" });
    for (let i = 0; i < 3; i++) {
      await client.withTicket("wide", async (ticket) => {
        assert.equal(ticket.agent, "opener");
        await ticket.answer(200);
      });
    }
  }
});

test("the daemon is gone", async (t) => {
  await assert.rejects(made(t, { url: env.TEST_GONE_URL }).acquire("wide"), (e) => {
    assert.ok(e instanceof Unavailable);
    assert.ok(e.message.includes(env.TEST_GONE_URL), e.message);
    assert.match(e.hint, /sluice serve/);
    assert.equal(e.status, 0);
    return true;
  });
  await assert.rejects(made(t, { url: "unix:/nowhere/sluice.sock" }).status(), Unavailable);
});

/** A daemon that misbehaves: answers everything with the same bytes; undefined never answers. */
async function server(t, answer, closes = false) {
  const open = new Set();
  const s = { connections: 0 };
  const listener = net.createServer((socket) => {
    s.connections++;
    open.add(socket);
    socket.on("error", () => {});
    socket.on("close", () => open.delete(socket));
    socket.on("data", () => {
      if (answer === undefined) return;
      if (closes) socket.end(answer);
      else socket.write(answer);
    });
  });
  await new Promise((resolve) => listener.listen(0, "127.0.0.1", resolve));
  t.after(() => {
    for (const socket of open) socket.destroy();
    return new Promise((resolve) => listener.close(resolve));
  });
  s.url = `http://127.0.0.1:${listener.address().port}`;
  return s;
}

const fine = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}";

test("connections are kept", async (t) => {
  const s = await server(t, fine);
  const client = made(t, { url: s.url });
  for (let i = 0; i < 5; i++) await client.status();
  assert.equal(s.connections, 1);
});

test("connections that are closed while idle", async (t) => {
  const client = made(t, { url: (await server(t, fine, true)).url });
  for (let i = 0; i < 5; i++) await client.status();
});

test("strange answers", async (t) => {
  for (const [answer, kind] of [
    ["HTTP/1.1 500 Oh\r\nContent-Length: 5\r\n\r\n<htm>", SluiceError],
    ["HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n<htm>", SluiceError],
    ["HTTP/1.1 200 OK\r\nContent-Length: 50\r\n\r\n{", Unavailable],
    ["HTTP/1.1 302 Go\r\nLocation: http://x\r\nContent-Length: 0\r\n\r\n", SluiceError],
    ["HTTP/1.1 429 No\r\nRetry-After: 7\r\nContent-Length: 2\r\n\r\n[]", RefusedNow],
    ["nonsense\r\n\r\n", Unavailable],
    ["", Unavailable],
  ]) {
    const client = made(t, { url: (await server(t, answer, true)).url });
    await assert.rejects(client.status(), (e) => e instanceof kind && (kind !== RefusedNow || e.retryAfterMs === 7000));
  }
});

test("never answered", async (t) => {
  const s = await server(t, undefined);
  await assert.rejects(made(t, { url: s.url, timeoutMs: 100 }).status(), TimedOut);
  const half = await server(t, "HTTP/1.1 200 OK\r\nContent-Length: 50\r\n\r\n{");
  await assert.rejects(made(t, { url: half.url, timeoutMs: 100 }).status(), TimedOut);
});

test("bad addresses", () => {
  for (const url of ["ftp://x", "127.0.0.1:7979", "http://u:p@h", "unix:", "http://h?q=1"]) {
    assert.throws(() => new Client({ url }), TypeError, url);
  }
});

test("the types name all that is there", () => {
  const types = readFileSync(new URL("../index.d.ts", import.meta.url), "utf8");
  const named = [...types.matchAll(/^export (?:class|const|function) (\w+)/gm)].map((m) => m[1]);
  assert.deepEqual(named.sort(), Object.keys(all).sort());
  for (const kind of ["Client", "Ticket", "Lease"]) {
    const [, body] = types.match(new RegExp(`^export class ${kind} \\{\\n([\\s\\S]*?)^\\}`, "m"));
    const typed = new Set([...body.matchAll(/^ {2}(?:readonly )?(\w+)[(<:]/gm)].map((m) => m[1]));
    const there = Object.getOwnPropertyNames(all[kind].prototype).filter((name) => !name.startsWith("_"));
    for (const name of there) assert.ok(name === "constructor" || typed.has(name), `${kind}.${name} has no type`);
  }
});
