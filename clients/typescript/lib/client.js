"use strict";

const os = require("node:os");
const { setTimeout: pause } = require("node:timers/promises");

const { Ended, NotFound } = require("./errors.js");
const { plainBody, plainHeaders } = require("./headers.js");
const { Lease } = require("./lease.js");
const { letterOf, plainLetter } = require("./letter.js");
const { GaveUp, attempt } = require("./retry.js");
const { Ticket } = require("./ticket.js");
const { Wire } = require("./wire.js");

const DEFAULT_URL = "http://127.0.0.1:7979";
const defaultWait = 30_000;

/** Asks a daemon. One client serves a whole program, and keeps its connections open. */
class Client {
  #wire;

  constructor({ url, token, agent, timeoutMs = 10_000, tls, onWarning } = {}) {
    if (!(timeoutMs > 0 && timeoutMs < 2 ** 30)) throw new TypeError(`timeoutMs must be above 0 and below ${2 ** 30} milliseconds, got ${timeoutMs}`);
    const env = process.env;
    const bearer = token ?? env.SLUICE_TOKEN ?? "";
    this.#wire = new Wire({ url: url || env.SLUICE_URL || DEFAULT_URL, token: bearer, timeoutMs, tls });
    this.agent = agent || env.SLUICE_AGENT || (bearer === "" ? login() : "");
    this._warn = onWarning ?? ((error, what) => process.emitWarning(`${what}: ${error.message}`, "SluiceWarning"));
  }

  get url() {
    return this.#wire.url;
  }

  async acquire(resource, { explicit = false, signal, ...how } = {}) {
    const wait = this._waiting(how.waitMs);
    const body = {
      resource,
      wait_ms: wait,
      agent: how.agent || this.agent || undefined,
      class: how.class || undefined,
      user: how.user || undefined,
      tool: how.tool || undefined,
      model: how.model || undefined,
      key: how.key || undefined,
      units: how.units,
      emergency: how.emergency || undefined,
      retry: how.retry || undefined,
      ttl_ms: how.ttlMs === undefined ? undefined : whole("ttlMs", how.ttlMs),
    };
    const ticket = new Ticket(this, await this._call("POST", "/v1/tickets", body, { extraMs: wait, signal }), explicit);
    if (signal?.aborted) {
      await this._end(ticket, false); // it came after nobody wanted it any more
      throw signal.reason;
    }
    return ticket;
  }

  async withTicket(resource, how, fn) {
    if (typeof how === "function") [how, fn] = [{}, how];
    const ticket = await this.acquire(resource, how);
    try {
      return await fn(ticket);
    } finally {
      await this._end(ticket, ticket.sent);
    }
  }

  async do(resource, how, send) {
    if (typeof how === "function") [how, send] = [{}, how];
    return attempt(this, resource, how, send, this._sleep);
  }

  gated(resource, how = {}, request = globalThis.fetch) {
    if (typeof how === "function") [how, request] = [{}, how];
    return async (...args) => {
      try {
        const letter = how.letter === true ? letterOf(args) : how.letter;
        return await this.do(resource, { ...how, letter }, () => request(...args));
      } catch (e) {
        if (e instanceof GaveUp && e.response !== undefined) return e.response;
        throw e;
      }
    };
  }

  // Has a request kept that was given up. Where that fails it is only told: the caller hears why it was given up.
  async _bury(resource, how, letter, { sends, status = 0, verdict = "" }, error) {
    try {
      const body = { ...plainLetter(letter), resource, attempts: sends, status, verdict, reason: error.message.slice(0, 150) };
      for (const name of ["class", "user", "tool", "model"]) body[name] = how[name] || undefined;
      body.agent = how.agent || this.agent || undefined;
      await this._call("POST", "/v1/dead-letters", body, {});
    } catch (e) {
      this._warn(e, "the request could not be kept as a dead letter");
    }
  }

  _sleep(ms, signal) {
    return pause(ms, undefined, { signal });
  }

  // What was done with a ticket is worth more than its end, so a failure is only told: it lapses by itself.
  async _end(ticket, sent) {
    try {
      await (sent ? ticket.close() : ticket.cancel());
    } catch (e) {
      if (!(e instanceof NotFound || e instanceof Ended)) this._warn(e, `ticket ${ticket.id} could not be ended`);
    }
  }

  async heartbeat(agent, { machine, waitsFor, resources, signal, ...said } = {}) {
    const body = {
      class: said.class || undefined,
      user: said.user || undefined,
      machine: machine || os.hostname(),
      waits_for: waitsFor,
      resources,
    };
    const got = await this._call("PUT", this.#agentPath(agent), body, { signal });
    return {
      light: got.light,
      allocated: got.allocated,
      startNewWork: got.start_new_work,
      chain: got.chain ?? [],
      reason: got.reason ?? "",
      takenOverBy: got.taken_over_by ?? "",
    };
  }

  async leave(agent, { machine, signal } = {}) {
    await this._call("DELETE", this.#agentPath(agent), undefined, { query: { machine: machine || os.hostname() }, signal });
  }

  async lease(agent, said = {}) {
    return new Lease(this, agent, said, this._warn)._begin();
  }

  async withLease(agent, said, fn) {
    if (typeof said === "function") [said, fn] = [{}, said];
    const lease = await this.lease(agent, said);
    try {
      return await fn(lease);
    } finally {
      await lease.close();
    }
  }

  async observe(resource, status, headers, { body, agent, model, signal } = {}) {
    const said = {
      status,
      headers: plainHeaders(headers),
      body: plainBody(body),
      agent: agent || this.agent || undefined,
      model: model || undefined,
    };
    return (await this._call("POST", path("resources", resource) + "/observe", said, { signal })).verdict;
  }

  async pause(resource, { forMs = 60_000, reason = "", signal } = {}) {
    await this._call("POST", path("resources", resource) + "/pause", { for_ms: whole("forMs", forMs), reason }, { signal });
  }

  async resume(resource, { signal } = {}) {
    await this._call("POST", path("resources", resource) + "/resume", {}, { signal });
  }

  async route(task, { units, agent, class: cls, user, signal } = {}) {
    const said = { task, units, agent: agent || this.agent || undefined, class: cls, user };
    const got = await this._call("POST", "/v1/route", said, { signal });
    return {
      model: got.model,
      resource: got.resource,
      waitMs: got.wait_ms ?? undefined,
      usdPerMtok: got.usd_per_mtok,
      reason: got.reason,
    };
  }

  status({ signal } = {}) {
    return this._call("GET", "/v1/status", undefined, { signal });
  }

  pool(resource, { signal } = {}) {
    return this._call("GET", path("pool", resource), undefined, { signal });
  }

  async why({ resource, agent, ticket, signal } = {}) {
    const query = Object.fromEntries(Object.entries({ resource, agent, ticket }).filter(([, v]) => v));
    return (await this._call("GET", "/v1/why", undefined, { query, signal })).waiting ?? [];
  }

  report({ since = "24h", signal } = {}) {
    return this._call("GET", "/v1/report", undefined, { query: { since }, signal });
  }

  close() {
    this.#wire.close();
  }

  // For tickets and leases.
  _call(method, to, body, options) {
    return this.#wire.call(method, to, body, options);
  }

  _waiting(ms) {
    return whole("waitMs", ms ?? defaultWait);
  }

  #agentPath(agent) {
    const name = agent || this.agent;
    if (!name) throw new TypeError("agent is missing: give it here, in new Client({ agent }) or in SLUICE_AGENT");
    return path("agents", name);
  }
}

function path(kind, name) {
  return `/v1/${kind}/${encodeURIComponent(name)}`;
}

function whole(name, ms) {
  if (!(ms >= 0 && ms < 2 ** 30)) throw new TypeError(`${name} must be 0 or more and below ${2 ** 30} milliseconds, got ${ms}`);
  return Math.ceil(ms);
}

function login() {
  try {
    return os.userInfo().username || "node";
  } catch {
    return "node"; // it has no entry
  }
}

module.exports = { DEFAULT_URL, Client };
