"use strict";

const { plainBody, plainHeaders } = require("./headers.js");

/** Permission to send one request. It must be ended, with close or cancel; ending it twice does no harm. */
class Ticket {
  #client;
  #ended = false;
  #ending;
  #sent;
  #usage;

  /** Tickets come from Client.acquire. */
  constructor(client, granted, explicit) {
    this.#client = client;
    this.#sent = !explicit;
    this.id = granted.ticket;
    this.resource = granted.resource;
    this.agent = granted.agent;
    this.class = granted.class;
    this.waitedMs = granted.waited_ms ?? 0;
    this.limits = granted.limits ?? [];
  }

  get ended() {
    return this.#ended;
  }

  /** Whether the request may have been sent, for withTicket. */
  get sent() {
    return this.#sent;
  }

  sending() {
    this.#sent = true;
  }

  async answer(status, headers, { body, signal } = {}) {
    this.#sent = true;
    const said = { status, headers: plainHeaders(headers), body: plainBody(body) };
    return this.#client._call("POST", this.#path("/answer"), said, { signal });
  }

  async renew({ waitMs, signal } = {}) {
    const wait = this.#client._waiting(waitMs);
    const got = await this.#client._call("POST", this.#path("/renew"), { wait_ms: wait }, { extraMs: wait, again: false, signal });
    this.id = got.ticket;
  }

  used(usage) {
    this.#usage = { ...usage };
  }

  close(usage = this.#usage) {
    return this.#end("POST", "/close", usage === undefined ? {} : { usage });
  }

  cancel() {
    return this.#end("DELETE", "", undefined);
  }

  // One at a time. If it fails, it can be tried again.
  async #end(method, suffix, body) {
    while (this.#ending !== undefined) await this.#ending.catch(() => {});
    if (this.#ended) return;
    this.#ending = this.#client._call(method, this.#path(suffix), body);
    try {
      await this.#ending;
      this.#ended = true;
    } finally {
      this.#ending = undefined;
    }
  }

  #path(suffix) {
    return "/v1/tickets/" + encodeURIComponent(this.id) + suffix;
  }
}

module.exports = { Ticket };
