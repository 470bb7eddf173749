// Trying again: how long to wait before a request is sent once more, and when to stop. The same rules as Go's Do.
"use strict";

const { RefusedNow, SluiceError } = require("./errors.js");

const maxHint = 24 * 3600_000;
const implausible = 31 * 24 * 3600_000;
const windows = { p0: [500, 5_000], p1: [2_000, 30_000], p2: [5_000, 60_000] };
const again = new Set(["throttled", "overloaded", "quota gone", "error"]);

/** How patient a caller is. */
class Retry {
  constructor({ attempts = 6, deadlineMs = 600_000, baseMs = 1_000, capMs = 30_000, windows: own = windows, on = () => false } = {}) {
    Object.assign(this, { attempts, deadlineMs, baseMs, capMs, windows: own, on });
  }

  /** What follows a failed send. */
  next({ sent, elapsedMs = 0, class: cls, hintMs, held = false }, draw = Math.random) {
    const left = Math.max(0, this.deadlineMs - Math.max(0, elapsedMs));
    if (sent >= this.attempts) return { waitMs: 0, give: true, reason: "attempts" };
    const [low, high, reason] = this.#span(Math.max(0, sent - 1), cls, hintMs, held);
    const waitMs = high > low ? Math.min(high, low + draw() * (high - low)) : low;
    return waitMs >= left ? { waitMs, give: true, reason: "deadline" } : { waitMs, give: false, reason };
  }

  #span(n, cls, hintMs, held) {
    if (held) return [0, 0, "queue"];
    if (hintMs !== undefined) {
      const hint = Math.min(Math.max(0, hintMs), maxHint);
      return [hint, hint + 1_000, "hint"];
    }
    if (cls && Object.hasOwn(this.windows, cls)) {
      const [min, max] = this.windows[cls];
      const low = Math.min(Math.max(0, min), Math.max(0, max));
      return [low, Math.min(Math.max(0, max), low * 2 ** (n + 1)), "priority"];
    }
    return [0, Math.min(this.capMs, this.baseMs * 2 ** n), "backoff"];
  }
}

const words = {
  attempts: "it was the last attempt",
  deadline: "the next could not start before the deadline",
  billing: "the provider refuses for billing reasons",
};

/** A request was not answered well, and is not sent again. */
class GaveUp extends SluiceError {
  constructor(resource, reason, sends, response, cause) {
    const hint = reason === "billing" ? "settle the account" : "see why the provider refuses, or raise the walls of Retry";
    super(`${resource}: gave up after ${sends} ${sends === 1 ? "send" : "sends"}: ${words[reason]}`, { hint, cause });
    Object.assign(this, { reason, sends, response });
  }
}

/** How many milliseconds a response asks to wait, undefined if it does not say. */
function hintOf(headers, now = Date.now()) {
  const plain = new Headers();
  for (const [name, value] of headers?.entries?.() ?? Object.entries(headers ?? {})) {
    if (value !== undefined && !plain.has(name)) plain.set(name, String(value));
  }
  for (const [name, unit] of [["retry-after-ms", 1], ["retry-after", 1_000]]) {
    const text = plain.get(name)?.trim() ?? "";
    if (/^(\d+\.?\d*|\.\d+)$/.test(text)) {
      const ms = Number(text) * unit;
      return ms <= implausible ? Math.min(ms, maxHint) : undefined;
    }
  }
  const at = Date.parse(plain.get("retry-after") ?? "");
  if (!/[a-z]/i.test(plain.get("retry-after") ?? "") || Number.isNaN(at)) return undefined;
  const made = Date.parse(plain.get("date") ?? "");
  const ms = at - (Number.isNaN(made) ? now : made);
  return ms >= -maxHint && ms <= implausible ? Math.min(Math.max(0, ms), maxHint) : undefined;
}

/** Sends a request through a client's gate, and again if that can help. */
async function attempt(client, resource, { policy = {}, letter, ...how }, send, sleep) {
  let last = { sends: 0 };
  try {
    return await attempts(client, resource, { policy, ...how }, send, sleep, (got) => (last = got));
  } catch (error) {
    if (letter && (error instanceof GaveUp || error instanceof RefusedNow)) await client._bury(resource, how, letter, last, error);
    throw error;
  }
}

async function attempts(client, resource, { policy, ...how }, send, sleep, heard) {
  const retry = policy instanceof Retry ? policy : new Retry(policy);
  const start = performance.now();
  for (let sends = 1; ; sends++) {
    const waitMs = Math.ceil(Math.min(Math.max(retry.deadlineMs - (performance.now() - start), 1), 600_000));
    const options = { ...how, waitMs, retry: sends > 1 || how.retry };
    const got = await client.withTicket(resource, options, async (ticket) => {
      let response;
      try {
        response = await send(ticket);
      } catch (error) {
        if (!retry.on(error)) throw error;
        return { verdict: "error", held: false, error };
      }
      if (!Number.isInteger(response?.status)) throw new TypeError("the request must return a response with a status and headers");
      const { verdict, held } = await ticket.answer(response.status, response.headers, { body: await refusal(response) });
      return { verdict, held, response };
    });
    heard({ sends, status: got.response?.status ?? 0, verdict: got.verdict });
    if (got.verdict === "billing stop") throw new GaveUp(resource, "billing", sends, got.response);
    if (!again.has(got.verdict)) return got.response;
    const elapsedMs = performance.now() - start;
    const next = retry.next({ sent: sends, elapsedMs, class: how.class, hintMs: hintOf(got.response?.headers), held: got.held });
    if (next.give) throw new GaveUp(resource, next.reason, sends, got.response, got.error);
    await sleep(next.waitMs, how.signal);
  }
}

/** The text of a refusal, which alone may explain it. The caller can still read it. */
async function refusal(response) {
  if (response.status < 400) return undefined;
  if (typeof response.body === "string") return response.body;
  if (typeof response.clone !== "function" || response.bodyUsed) return undefined;
  return response.clone().text().catch(() => undefined);
}

module.exports = { Retry, GaveUp, hintOf, attempt };
