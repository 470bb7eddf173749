// What can go wrong, as classes of errors.
"use strict";

/** The gate said no, or could not be asked. */
class SluiceError extends Error {
  /**
   * @param {string} detail
   * @param {Record<string, any>} [more]
   */
  constructor(detail, more = {}) {
    super(more.hint ? `${detail} (${more.hint})` : detail, more.cause === undefined ? undefined : { cause: more.cause });
    this.name = new.target.name;
    this.status = more.status ?? 0;
    this.detail = detail;
    this.hint = more.hint ?? "";
    this.limit = more.limit ?? "";
    this.why = more.why ?? "";
    this.retryAfterMs = more.retryAfterMs;
    this.retryAt = more.retryAt;
    this.chain = more.chain ?? [];
    this.heldBy = more.heldBy ?? [];
    this.heldUntil = more.heldUntil;
  }
}

/** The request makes no sense: a field is wrong (400, 413, 415, 421). */
class Invalid extends SluiceError {}

/** The daemon wants a token, and got none that it knows (401). */
class Unauthorized extends SluiceError {}

/** It is ruled out, now and later: a budget, a class, a cost above the limit (403). */
class Refused extends SluiceError {}

/** There is no such resource, ticket or task (404). */
class NotFound extends SluiceError {}

/** The ticket has ended (409). */
class Ended extends SluiceError {}

/** The turn did not come within the wait (429). */
class RefusedNow extends SluiceError {}

/** The daemon, or the store behind it, cannot be reached (503, or no answer at all). */
class Unavailable extends SluiceError {}

/** The daemon did not answer in time. */
class TimedOut extends Unavailable {}

const kinds = new Map([
  [400, Invalid], [401, Unauthorized], [403, Refused], [404, NotFound], [409, Ended], [413, Invalid], [415, Invalid],
  [421, Invalid], [429, RefusedNow], [502, Unavailable], [503, Unavailable], [504, Unavailable],
]);

const whose = "is there a sluice daemon at this address?";

/** The error for an answer that is one. */
function problem(status, headers, text) {
  let p = {};
  try {
    const got = JSON.parse(text);
    if (got !== null && typeof got === "object") p = got;
  } catch {
    // whatever it is, it is not the daemon's
  }
  const say = (v) => (typeof v === "string" ? v : "");
  const seconds = headers["retry-after"];
  let retryAfterMs;
  if (typeof p.retry_after_ms === "number") retryAfterMs = p.retry_after_ms;
  else if (/^\d+$/.test(seconds ?? "")) retryAfterMs = Number(seconds) * 1000;
  const time = (v) => {
    const at = new Date(say(v));
    return Number.isNaN(at.getTime()) ? undefined : at;
  };
  const detail = say(p.detail) || say(p.title);
  const Kind = kinds.get(status) ?? SluiceError;
  return new Kind(detail || `the answer has status ${status} and does not say why`, {
    status,
    hint: detail ? say(p.hint) : whose,
    limit: say(p.limit),
    why: say(p.why),
    retryAfterMs,
    retryAt: time(p.retry_at),
    chain: Array.isArray(p.chain) ? p.chain.map(String) : [],
    heldBy: Array.isArray(p.held_by) ? p.held_by.map(String) : [],
    heldUntil: time(p.held_until),
  });
}

module.exports = { SluiceError, Invalid, Unauthorized, Refused, NotFound, Ended, RefusedNow, Unavailable, TimedOut, whose, problem };
