"use strict";

const hurry = 5_000; // until the next try when one has failed

/** An agent that is alive: heartbeats are sent until it is closed. Leases come from Client.lease. */
class Lease {
  #client;
  #agent;
  #everyMs;
  #said;
  #warn;
  #timer;
  #standing;
  #last = Promise.resolve();
  #closed = false;

  constructor(client, agent, { everyMs = 60_000, ...said }, warn) {
    if (!(everyMs > 0 && everyMs < 2 ** 31)) throw new TypeError(`everyMs must be above 0 and below ${2 ** 31} milliseconds, got ${everyMs}`);
    this.#client = client;
    this.#agent = agent;
    this.#everyMs = everyMs;
    this.#said = said;
    this.#warn = warn;
    this.error = undefined;
  }

  get standing() {
    return this.#standing;
  }

  get startNewWork() {
    return this.#standing.startNewWork;
  }

  update({ waitsFor } = {}) {
    if (waitsFor !== undefined) this.#said = { ...this.#said, waitsFor };
    return this.beat();
  }

  // One heartbeat at a time, so that an older one never overrules.
  beat() {
    const next = this.#last.then(async () => {
      try {
        this.#standing = await this.#client.heartbeat(this.#agent, this.#said);
        this.error = undefined;
      } catch (e) {
        this.error = e;
        throw e;
      }
      return this.#standing;
    });
    this.#last = next.catch(() => {});
    return next;
  }

  /** Takes the lease. */
  async _begin() {
    await this.beat();
    this.#again(this.#everyMs);
    return this;
  }

  #again(ms) {
    if (this.#closed) return;
    this.#timer = setTimeout(async () => {
      try {
        await this.beat();
        this.#again(this.#everyMs);
      } catch (e) {
        this.#warn(e, "heartbeat");
        this.#again(Math.min(this.#everyMs, hurry));
      }
    }, ms);
    this.#timer.unref(); // it keeps no program from ending
  }

  /** Takes the agent off. A failure is only told: the lease ends by itself. */
  async close() {
    if (this.#closed) return;
    this.#closed = true;
    clearTimeout(this.#timer);
    await this.#last;
    try {
      await this.#client.leave(this.#agent, { machine: this.#said.machine });
    } catch (e) {
      this.#warn(e, "leaving");
    }
  }
}

module.exports = { Lease };
