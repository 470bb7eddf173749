import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import fs from "node:fs";
import http from "node:http";
import os from "node:os";
import path from "node:path";
import test from "node:test";
import { promisify } from "node:util";

import { RefusedNow, Unavailable, sluiceFetch } from "../index.mjs";
import { env, made, resource, until, waiting } from "./common.mjs";

/** A provider that answers as a test says. */
async function provider(t, answer) {
  const seen = [];
  const server = http.createServer(async (req, res) => {
    let body = "";
    for await (const part of req) body += part;
    seen.push({ method: req.method, url: req.url, headers: req.headers, body });
    answer(req, res, seen.length);
  });
  await new Promise((done) => server.listen(0, "127.0.0.1", done));
  t.after(() => {
    server.closeAllConnections();
    server.close();
  });
  return { url: `http://127.0.0.1:${server.address().port}`, seen };
}

const level = async (client, name) => Object.fromEntries((await resource(client, "sends")).limits.map((l) => [l.name, l.used]))[name];
const free = (client) => until("the place is free", async () => (await level(client, "inflight")) === 0);
const event = (o) => `data: ${typeof o === "string" ? o : JSON.stringify(o)}\n\n`;
const chat = (more) => ({
  method: "POST",
  headers: { "content-type": "application/json", authorization: "Bearer canary-of-a-key" },
  body: JSON.stringify({ model: "gpt-5", messages: [{ role: "user", content: "hi" }], ...more }),
});
const usage = (prompt_tokens) => ({ choices: [], usage: { prompt_tokens, completion_tokens: 1 } });

test("a response is what the provider sent, and its usage is charged", async (t) => {
  const client = made(t);
  const { url, seen } = await provider(t, (req, res) => {
    res.writeHead(200, "Fine", { "content-type": "application/json", "x-y": "z" });
    res.end(JSON.stringify({ model: "gpt-5", ...usage(777) }));
  });
  const before = await level(client, "input");
  const response = await sluiceFetch({ client, resource: "sends" })(url + "/v1/chat/completions", chat());
  assert.deepEqual([response.status, response.statusText, response.headers.get("x-y"), response.url], [200, "Fine", "z", url + "/v1/chat/completions"]);
  assert.equal((await response.json()).usage.prompt_tokens, 777);
  assert.equal(seen[0].headers.authorization, "Bearer canary-of-a-key");
  assert.equal(await level(client, "input"), before + 777);
  assert.equal(await level(client, "inflight"), 0);
});

test("a stream is charged when it ends, is cancelled, aborted or broken", async (t) => {
  const client = made(t);
  const { url } = await provider(t, (req, res) => {
    res.writeHead(200, { "content-type": "text/event-stream" });
    res.write(event({ choices: [{ delta: { content: "é".repeat(10) } }] }) + event(usage(500)));
    if (req.url.endsWith("end")) res.end(event("[DONE]"));
    if (req.url.endsWith("break")) setTimeout(() => res.destroy(), 50);
  });
  const send = sluiceFetch({ client, resource: "sends" });
  for (const how of ["end", "cancel", "abort", "break"]) {
    const before = await level(client, "input");
    const stop = new AbortController();
    const response = await send(`${url}/v1/chat/completions?${how}`, { ...chat({ stream: true }), signal: stop.signal });
    const reader = response.body.getReader();
    const { value } = await reader.read();
    assert.match(new TextDecoder().decode(value), /éé/);
    assert.equal(await level(client, "inflight"), 1, how);
    await assert.rejects(sluiceFetch({ client, resource: "sends", waitMs: 50 })(url + "/v1/chat/completions", chat()), RefusedNow);
    if (how === "end") while (!(await reader.read()).done);
    if (how === "cancel") await reader.cancel("enough");
    if (how === "abort") {
      stop.abort();
      await assert.rejects(reader.read(), { name: "AbortError" });
    }
    if (how === "break") await assert.rejects(async () => { while (!(await reader.read()).done); }, TypeError);
    await free(client);
    assert.equal(await level(client, "input"), before + 500, how);
  }
});

test("a refusal is sent again by the daemon's rules, and counted", async (t) => {
  const client = made(t);
  const { url, seen } = await provider(t, (req, res, n) => {
    res.writeHead(n === 1 ? 429 : 200, { "retry-after": "1" });
    res.end("ok");
  });
  const before = await resource(client, "again");
  for (const input of [() => [url, { method: "POST", body: "a=1" }], () => [new Request(url, { method: "POST", body: "a=1" })]]) {
    seen.length = 0;
    const response = await sluiceFetch({ client, resource: "again" })(...input());
    assert.equal(await response.text(), "ok");
    assert.deepEqual(seen.map((s) => [s.method, s.body]), [["POST", "a=1"], ["POST", "a=1"]]);
  }
  const after = await until("both are over", async () => {
    const r = await resource(client, "again");
    return r.in_flight === 0 && r;
  });
  assert.deepEqual([after.sent - before.sent, after.retried - before.retried, after.throttled - before.throttled], [4, 2, 2]);
});

test("what cannot be repeated is sent once, and a retry of an SDK too", async (t) => {
  const client = made(t);
  const { url, seen } = await provider(t, (req, res) => {
    res.writeHead(503, { "retry-after": "0" });
    res.end("no");
  });
  const send = sluiceFetch({ client, resource: "again" });
  const stream = new Blob(["streamed"]).stream();
  assert.equal((await send(url, { method: "POST", body: stream, duplex: "half" })).status, 503);
  assert.equal((await send(url, { headers: { "x-stainless-retry-count": "1" } })).status, 503);
  assert.equal(seen.length, 2);
  await client.resume("again");
});

test("a provider that cannot be reached throws what fetch throws", async (t) => {
  const client = made(t);
  const { url } = await provider(t, (req, res) => res.destroy());
  await assert.rejects(sluiceFetch({ client, resource: "sends" })(url, { method: "POST", body: "x" }), { name: "TypeError", message: "fetch failed" });
  await free(client);
});

test("the turn that does not come", async (t) => {
  const client = made(t);
  const ticket = await client.acquire("place");
  const { url, seen } = await provider(t, (req, res) => res.end("ok"));
  await assert.rejects(sluiceFetch({ client, resource: "place", waitMs: 100 })(url), (e) => e instanceof RefusedNow && e.status === 429);
  const stop = new AbortController();
  const why = new Error("enough");
  const coming = sluiceFetch({ client, resource: "place" })(url, { signal: stop.signal });
  coming.catch(() => {});
  await waiting(client, "place", 1);
  stop.abort(why);
  await assert.rejects(coming, (e) => e === why);
  await waiting(client, "place", 0);
  assert.equal(seen.length, 0);
  await ticket.cancel();
});

test("an address that no resource has, or that is a gate's, is sent as it is", async (t) => {
  const client = made(t);
  const { url, seen } = await provider(t, (req, res) => res.end("ok"));
  assert.equal(await (await sluiceFetch({ client })(url + "/x")).text(), "ok");
  const gone = made(t, { url: env.TEST_GONE_URL });
  assert.equal(await (await sluiceFetch({ client: gone, resource: "wide" })(url + "/@me/openai/v1/models")).text(), "ok");
  assert.equal(seen.length, 2);
  await assert.rejects(sluiceFetch({ client: gone, resource: "wide" })(url), Unavailable);
});

const run = promisify(execFile);
const script = (url) => `
  import { sluiceFetch, Unavailable } from ${JSON.stringify(new URL("../index.mjs", import.meta.url).href)};
  try {
    const r = await sluiceFetch({ agent: "mine" })(${JSON.stringify(url)});
    console.log(await r.text());
  } catch (e) {
    console.log(e instanceof Unavailable, e.message);
  }`;

test("without a daemon one is started for the user, and shared", async (t) => {
  const { url, seen } = await provider(t, (req, res) => res.end("ok"));
  const home = fs.mkdtempSync(path.join(os.tmpdir(), "sluice"));
  const bin = path.join(home, "bin");
  fs.mkdirSync(bin);
  fs.symlinkSync(env.TEST_SLUICE, path.join(bin, "sluice"));
  fs.writeFileSync(path.join(home, "sluice.yaml"), `resources: {mine: {upstream: "${url}", limits: [{name: minute, size: 100/min}]}}\n`);
  const vars = { ...env, HOME: home, XDG_RUNTIME_DIR: home, XDG_STATE_HOME: home, SLUICE_CONFIG: path.join(home, "sluice.yaml"), SLUICE_URL: "", SLUICE_TOKEN: "", PATH: bin + path.delimiter + path.dirname(process.execPath) };
  const go = async (more) => (await run(process.execPath, ["--input-type=module", "-e", script(url)], { env: { ...vars, ...more } })).stdout.trim();
  assert.match(await go({ SLUICE_START: "off" }), /^true no daemon answers .*sluice serve/);
  assert.match(await go({ PATH: path.dirname(process.execPath) }), /^true .*npm install @sluicehq\/sluice-/);
  try {
    assert.deepEqual(await Promise.all([go(), go(), go()]), ["ok", "ok", "ok"]);
    assert.equal(seen.length, 3);
    const { stdout } = await run(env.TEST_SLUICE, ["report", "--json"], { env: vars });
    assert.match(stdout, /"first_sends":\s*3/);
  } finally {
    const { stdout } = await run("ps", ["-eo", "pid=,args="]);
    const daemons = stdout.split("\n").filter((line) => line.includes("serve --listen unix:" + home));
    assert.equal(daemons.length, 1, stdout);
    const pid = Number.parseInt(daemons[0], 10);
    process.kill(pid);
    await until("the daemon has ended", async () => !runs(pid));
    fs.rmSync(home, { recursive: true, force: true });
  }
});

function runs(pid) {
  try {
    process.kill(pid, 0);
    return true;
  } catch {
    return false;
  }
}
