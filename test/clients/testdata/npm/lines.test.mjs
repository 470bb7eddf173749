// Runs the lines of docs/typescript.md with the packages that they name, against a daemon and `sluice mock`.
import assert from "node:assert/strict";
import fs from "node:fs";
import http from "node:http";
import test from "node:test";

import { createOpenAI } from "@ai-sdk/openai";
import { Client, RefusedNow, sluiceFetch, sluiceInterceptor, sluiceMiddleware, sluiceProcessor } from "@sluicehq/sluice";
import { MockActivityEnvironment } from "@temporalio/testing";
import { generateText, streamText, wrapLanguageModel } from "ai";
import axios from "axios";
import { Queue, QueueEvents, Worker } from "bullmq";
import { Redis } from "ioredis";
import OpenAI from "openai";
import undici from "undici";

const page = fs.readFileSync(process.env.TEST_PAGE, "utf8");
const client = new Client();

/** The value that a line of a section declares. */
function value(section, n, names) {
  const [, text] = page.split(`\n## ${section}\n`);
  const line = [...text.matchAll(/```js\n([^]*?)```/g)][n][1];
  const name = /const (\w+)/.exec(line)[1];
  const code = line.includes("await") ? `return (async () => { ${line}; return ${name} })()` : `${line}; return ${name}`;
  return new Function(...Object.keys(names), code)(...Object.values(names));
}

const resource = async (name) => (await client.status()).resources.find((r) => r.name === name);
const stats = async () => (await fetch(process.env.OPENAI_BASE_URL.replace("/v1", "/_mock/stats"))).json();

async function settled(name) {
  for (const end = performance.now() + 30_000; performance.now() < end; await new Promise((done) => setTimeout(done, 20))) {
    const r = await resource(name);
    if (r.in_flight === 0) return r;
  }
  throw new Error("in vain");
}

/** What was sent to a resource meanwhile. */
async function sent(name, run) {
  const before = await settled(name);
  await run();
  const after = await settled(name);
  return { sent: after.sent - before.sent, retried: after.retried - before.retried, throttled: after.throttled - before.throttled };
}

const question = { model: "gpt-5", messages: [{ role: "user", content: "hi" }] };

test("OpenAI", async () => {
  const openai = value("OpenAI", 0, { OpenAI, sluiceFetch });
  const counted = await sent("openai", async () => {
    assert.ok((await openai.chat.completions.create(question)).choices[0].message.content);
    const stream = await openai.chat.completions.create({ ...question, stream: true, stream_options: { include_usage: true } });
    let chunks = 0;
    for await (const _ of stream) chunks++;
    assert.ok(chunks > 1);
    for await (const _ of await openai.chat.completions.create({ ...question, stream: true })) break; // abandoned
  });
  assert.deepEqual(counted, { sent: 3, retried: 0, throttled: 0 });
});

test("200 calls at once get no refusal from a provider whose limits are stated", async () => {
  const openai = value("OpenAI", 0, { OpenAI, sluiceFetch });
  const before = await stats();
  await Promise.all(Array.from({ length: 200 }, () => openai.chat.completions.create(question)));
  const after = await stats();
  assert.deepEqual([after.accepted - before.accepted, after.throttled - before.throttled], [200, 0]);
});

test("Vercel AI SDK", async () => {
  const provider = value("Vercel AI SDK", 0, { createOpenAI, sluiceFetch });
  const counted = await sent("openai", async () => {
    assert.ok((await generateText({ model: provider.chat("gpt-5"), prompt: "hi" })).text);
    let text = "";
    for await (const part of streamText({ model: provider.chat("gpt-5"), prompt: "hi" }).textStream) text += part;
    assert.ok(text);
  });
  assert.deepEqual(counted, { sent: 2, retried: 0, throttled: 0 });
});

test("the middleware of the Vercel AI SDK", async () => {
  const plain = createOpenAI();
  const provider = (name) => plain.chat(name);
  const model = value("Vercel AI SDK", 1, { wrapLanguageModel, provider, sluiceMiddleware });
  const counted = await sent("openai", async () => {
    assert.ok((await generateText({ model, prompt: "hi" })).usage.inputTokens > 0);
    let text = "";
    for await (const part of streamText({ model, prompt: "hi" }).textStream) text += part;
    assert.ok(text);
  });
  assert.deepEqual(counted, { sent: 2, retried: 0, throttled: 0 });
});

/** A provider that refuses the first request. */
async function refusing(t) {
  let n = 0;
  const server = http.createServer((req, res) => {
    res.writeHead(++n === 1 ? 429 : 200, { "content-type": "application/json", "retry-after": "1" });
    res.end(`{"n":${n}}`);
  });
  await new Promise((done) => server.listen(0, "127.0.0.1", done));
  t.after(() => server.close());
  return `http://127.0.0.1:${server.address().port}/`;
}

test("axios", async (t) => {
  const http = value("axios", 0, { axios, sluiceFetch, Request, Response });
  const url = await refusing(t);
  const counted = await sent("api", async () => {
    assert.deepEqual((await http.post(url, { a: 1 })).data, { n: 2 });
  });
  assert.deepEqual(counted, { sent: 2, retried: 1, throttled: 1 });
});

test("undici", async (t) => {
  const fetch = value("undici", 0, { undici, sluiceFetch });
  const url = await refusing(t);
  const counted = await sent("api", async () => {
    assert.deepEqual(await (await fetch(new undici.Request(url))).json(), { n: 2 });
    assert.deepEqual(await (await fetch(url)).json(), { n: 3 });
  });
  assert.deepEqual(counted, { sent: 3, retried: 1, throttled: 1 });
});

test("BullMQ", async (t) => {
  const connection = new Redis(process.env.TEST_REDIS, { maxRetriesPerRequest: null });
  const queue = new Queue("jobs", { connection });
  const events = new QueueEvents("jobs", { connection });
  const ran = [];
  const work = async (job, token, signal, ticket) => {
    await ticket.answer(200, {});
    ran.push(job.data);
    return job.data;
  };
  // Two places are free, and one of them is taken for a while: the worker goes on with jobs of another resource.
  const holder = await client.acquire("place");
  const resourceOf = { resource: (job) => job.data.api };
  const worker = value("BullMQ", 0, { Worker, connection, work, sluiceProcessor: (_, processor) => sluiceProcessor(resourceOf, processor) });
  t.after(async () => {
    await worker.close();
    await events.close();
    await queue.close();
    await connection.quit();
  });
  const [held, free] = await queue.addBulk([{ name: "x", data: { api: "place" } }, { name: "x", data: { api: "api" } }]);
  assert.deepEqual(await free.waitUntilFinished(events, 30_000), { api: "api" });
  assert.deepEqual(ran, [{ api: "api" }]);
  assert.equal(await held.getState(), "delayed");
  await holder.cancel();
  assert.deepEqual(await held.waitUntilFinished(events, 30_000), { api: "place" });
  assert.equal((await queue.getJob(held.id)).attemptsMade, 1);
  assert.equal((await settled("place")).in_flight, 0);
});

test("Temporal", async () => {
  const Worker = { create: async (options) => options };
  const { interceptors } = await value("Temporal", 0, { Worker, options: {}, sluiceInterceptor });
  const run = (resource) => {
    const activity = resource === undefined ? interceptors.activity : [sluiceInterceptor({ resource })];
    return new MockActivityEnvironment({ attempt: 1 }, { interceptors: activity }).run(async (n) => n + 1, 1);
  };
  const counted = await sent("api", async () => assert.equal(await run(), 2));
  assert.deepEqual(counted, { sent: 1, retried: 0, throttled: 0 });
  const holder = await client.acquire("place");
  await assert.rejects(run("place"), (e) => {
    assert.deepEqual([e.name, e.type, e.nonRetryable, e.cause instanceof RefusedNow], ["ApplicationFailure", "SluiceHeld", false, true]);
    assert.ok(e.nextRetryDelay >= 1000 && e.nextRetryDelay < 10_000, String(e.nextRetryDelay));
    return true;
  });
  assert.equal(await run(() => undefined), 2);
  await holder.cancel();
  assert.equal(await run("place"), 2);
});
