// fetch behind the gate: each request is sent by this process, in its turn. What a request costs, what a response means and whether to
// send again is the daemon's to say; nothing here reads models, limits or usage.
"use strict";

const { Invalid, NotFound, Unavailable } = require("./errors.js");
const { plainHeaders } = require("./headers.js");
const { bytesOf, isSecret } = require("./letter.js");
const { forget, gateOf } = require("./start.js");

const longest = 24 << 20; // bytes of a request's body that the daemon is told
const small = 1 << 20; // a response that is read before anybody gets it
const piece = 256 << 10; // how much of a response is told at a time
const beat = 60_000; // how often the daemon hears of a response that goes on
const patience = 660_000; // the daemon ends a request's wait before

/**
 * A function like fetch whose requests pass the gate.
 * @param {import("../index.d.ts").FetchOptions} [options]
 */
function sluiceFetch(options = {}) {
  if (typeof options === "string") options = { resource: options };
  const fetch = options.fetch ?? globalThis.fetch;
  return async (input, init) => {
    const call = outline(input, init);
    if (passesAnyway(call.url)) return fetch(input, init);
    const { client, path } = await begin(options, call);
    if (path === undefined) return fetch(input, init);
    return new Sending(client, path, call).send(fetch, input, init);
  };
}

/** What a call of fetch sends. */
function outline(input, init) {
  const asked = typeof input === "object" && input !== null && "url" in input ? input : undefined;
  const body = init?.body ?? asked?.body ?? undefined;
  return {
    url: String(asked?.url ?? input),
    method: (init?.method ?? asked?.method ?? "GET").toUpperCase(),
    headers: new Headers(init?.headers ?? asked?.headers),
    signal: init?.signal ?? asked?.signal ?? undefined,
    asked: asked !== undefined && init?.body === undefined && asked.body ? asked : undefined, // its body can be read once
    body,
  };
}

/**
 * Whether a request goes through a gate in any case, as those of a command of `sluice run` do: it is sent to the run's gate, or the run
 * decrypts what goes to its host, and this Node reads the proxy variables.
 */
function passesAnyway(url) {
  try {
    const u = new URL(url);
    const { SLUICE_DECRYPTED: hosts, NODE_USE_ENV_PROXY: proxies } = process.env;
    const [major, minor] = process.versions.node.split(".").map(Number);
    if (hosts && proxies === "1" && (major >= 24 || (major === 22 && minor >= 21)) && hosts.split(",").includes(`${u.hostname}:${u.port || 443}`)) return true;
    return u.pathname.startsWith("/@") && ["127.0.0.1", "localhost", "[::1]"].includes(u.hostname);
  } catch {
    return true; // fetch says what is wrong with it
  }
}

/** Waits for the turn. There is no path if no resource has the address. */
async function begin(options, call) {
  const said = await opening(options, call);
  const { waitMs, resource } = options;
  for (let again = false; ; again = true) {
    const client = await gateOf(options);
    try {
      const how = { extraMs: waitMs ?? patience, signal: call.signal };
      const turn = await client._call("POST", "/v1/exchanges", { ...said, agent: options.agent || client.agent || undefined }, how);
      if (call.signal?.aborted) {
        await client._call("DELETE", "/v1/exchanges/" + turn.exchange).catch(() => {});
        throw call.signal.reason;
      }
      return { client, path: "/v1/exchanges/" + turn.exchange };
    } catch (e) {
      if (e instanceof NotFound && !resource) return { client };
      // A daemon that was started for this process has ended, because it had nothing to do. Nothing was sent.
      if (again || options.client !== undefined || !(e instanceof Unavailable) || e.status !== 0) throw e;
      await forget(client);
    }
  }
}

/** The request as the daemon takes it: without keys, and with its body if it is JSON. */
async function opening({ resource, class: cls, user, tool, key, waitMs, emergency }, call) {
  const url = new URL(call.url);
  url.hash = url.username = url.password = "";
  for (const name of [...url.searchParams.keys()]) if (isSecret(name)) url.searchParams.delete(name);
  const headers = {};
  for (const [name, value] of Object.entries(plainHeaders(call.headers))) if (!isSecret(name)) headers[name] = value;
  const said = {
    resource: resource || undefined,
    class: cls || undefined,
    user: user || undefined,
    tool: tool || undefined,
    key: key || undefined,
    wait_ms: waitMs,
    emergency: emergency || undefined,
    method: call.method,
    url: url.href,
    headers,
    once: isStream(call) || undefined,
  };
  if (kindOf(call.headers).includes("json")) {
    const bytes = call.asked ? new Uint8Array(await call.asked.clone().arrayBuffer()) : bytesOf(call.body);
    if (bytes !== undefined && bytes.length <= longest) said.body = inJSON(bytes);
  }
  return said;
}

/** Whether a body can be sent only once. */
function isStream({ asked, body }) {
  if (asked !== undefined || body === undefined || body === null || typeof body === "string") return false;
  const repeatable = [URLSearchParams, ArrayBuffer, Blob, FormData];
  return !(ArrayBuffer.isView(body) || repeatable.some((kind) => body instanceof kind));
}

const kindOf = (headers) => (headers.get("content-type") ?? "").split(";")[0].trim().toLowerCase();

function inJSON(bytes) {
  const buffer = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  const text = buffer.toString("utf8");
  return Buffer.from(text).equals(buffer) ? text : { base64: buffer.toString("base64") };
}

/** A request that has its turn, until its response is over. */
class Sending {
  constructor(client, path, call) {
    this.client = client;
    this.path = path;
    this.call = call;
    this.over = false;
    this.held = [];
    this.size = 0;
    this.telling = Promise.resolve(); // one report after the other
  }

  async send(fetch, input, init) {
    for (;;) {
      let response;
      try {
        response = await fetch(this.call.asked === input ? input.clone() : input, init);
      } catch (error) {
        const left = this.call.signal?.aborted;
        const again = await this.answer({ error: String(error?.cause?.code ?? error?.name), ended: left ? "left" : "broken" });
        if (again && !left) continue;
        throw error;
      }
      const said = { status: response.status, headers: plainHeaders(response.headers) };
      const whole = response.body === null || comesAtOnce(response);
      if (whole) Object.assign(said, await wholeOf(response));
      if (await this.answer(said)) {
        await response.body?.cancel().catch(() => {});
        continue;
      }
      return whole ? response : this.watched(response);
    }
  }

  /** Reports what came of a send. It returns whether to send again. */
  async answer(said) {
    try {
      const how = { extraMs: patience, signal: said.ended === "left" ? undefined : this.call.signal };
      return (await this.client._call("POST", this.path + "/answer", said, how)).send_again;
    } catch (e) {
      if (this.call.signal?.aborted) {
        this.client._call("POST", this.path + "/body", { ended: "left" }).catch(() => {}); // it may have been judged already
        throw this.call.signal.reason;
      }
      this.lost(e);
      return false;
    }
  }

  // The response is worth more than its report: the daemon ends what it hears no more of.
  lost(error) {
    this.over = true;
    if (!(error instanceof NotFound || error instanceof Invalid)) this.client._warn(error, "a response could not be reported");
  }

  /** A response that is still being read: its body is reported as it passes, and its end. */
  watched(response) {
    const { signal } = this.call;
    const reader = response.body.getReader();
    this.speaks = /json|event-?stream/.test(kindOf(response.headers));
    const aborted = () => this.end("left");
    signal?.addEventListener("abort", aborted, { once: true });
    const timer = setInterval(() => this.reading && this.tell({}), beat);
    timer.unref();
    this.stop = () => {
      clearInterval(timer);
      signal?.removeEventListener("abort", aborted);
    };
    const body = new ReadableStream({
      pull: async (controller) => {
        try {
          this.reading = true; // who does not read is not waited for
          const { done, value } = await reader.read();
          if (done) {
            await this.end("complete");
            return controller.close();
          }
          this.feed(value);
          controller.enqueue(value);
        } catch (error) {
          this.end(signal?.aborted ? "left" : "broken");
          controller.error(error);
        } finally {
          this.reading = false;
        }
      },
      cancel: async (reason) => {
        await Promise.all([this.end("left"), reader.cancel(reason)]);
      },
    }, { highWaterMark: 0 });
    const { status, statusText, headers, url, redirected, type } = response;
    const out = new Response(body, { status, statusText, headers });
    for (const [name, value] of Object.entries({ url, redirected, type })) Object.defineProperty(out, name, { value });
    return out;
  }

  feed(bytes) {
    if (!this.speaks || this.over) return;
    this.held.push(bytes);
    this.size += bytes.length;
    if (this.size >= piece) this.tell({});
  }

  /** Reports what has come, once. */
  tell(said) {
    if (this.over) return this.telling;
    if (this.size > 0) said.body = inJSON(Buffer.concat(this.held));
    [this.held, this.size] = [[], 0];
    this.telling = this.telling.then(() => this.client._call("POST", this.path + "/body", said)).catch((e) => this.lost(e));
    return this.telling;
  }

  end(ended) {
    if (this.over) return this.telling;
    this.stop();
    const told = this.tell({ ended });
    this.over = true;
    return told;
  }
}

/** Whether a response is read before it is passed on: then all of it is told at once, with the text of a refusal. */
function comesAtOnce({ status, headers }) {
  const kind = kindOf(headers);
  const size = headers.get("content-length");
  if (size !== null && Number(size) > small) return false;
  return (status >= 400 && !/event-?stream/.test(kind)) || /json$/.test(kind);
}

/** What a whole response says. The caller can still read it. */
async function wholeOf(response) {
  if (response.body === null) return { ended: "complete" };
  try {
    const bytes = new Uint8Array(await response.clone().arrayBuffer());
    return { body: inJSON(bytes), ended: "complete" };
  } catch {
    return { ended: "broken" };
  }
}

module.exports = { sluiceFetch };
