// When the page asks for what. One question is under way at a time; the rest waits for its turn.

import { get, listen, Refused, token } from './api.js';

const second = 1000;
const hiddenEvery = 15 * second;
const slowest = 15 * second; // between tries while nobody answers
const whyEvery = 2 * second;
const recentEvery = 2 * second;
const meEvery = 300 * second; // a reload may change what a token allows
const configEvery = 300 * second;
const mostWaiting = 1000; // of those who wait, by name
const soonest = 250; // at most four questions a second, however much happens

// How often the history is asked for: a step of it is a minute, or more.
const pastEvery = { '15m': 5 * second, '1h': 10 * second, '24h': 30 * second, '7d': 60 * second };

// Events that come with every request; after all others what is shown may no longer be true.
const quiet = new Set(['send', 'answer', 'usage', 'cancel', 'would_wait', 'refused', 'dropped']);

// Feed keeps data up to date and tells the page of it: status, why, recent, past, config, me, event, link.
export class Feed {
  constructor(page) {
    this.page = page;
    this.fails = 0;
    this.timer = 0;
    this.asked = 0; // when the last question was
    this.busy = false;
    this.again = false;
    this.locked = false; // a token is asked for
    this.next = { why: 0, recent: 0, past: 0, config: 0, me: 0 };
    this.range = '1h';
    this.listening = 0; // tries in a row
    this.wake = null;
  }

  start() {
    document.addEventListener('visibilitychange', () => { if (!document.hidden) this.refresh(); });
    addEventListener('online', () => this.refresh());
    this.poll();
    this.follow();
  }

  // refresh asks soon: at once, unless something was asked a moment ago.
  refresh() {
    if (this.busy) {
      this.again = true;
      return;
    }
    clearTimeout(this.timer);
    const since = Date.now() - this.asked;
    if (since >= soonest) this.poll();
    else this.timer = setTimeout(() => this.poll(), soonest - since);
  }

  // look asks for another part of the past.
  look(range) {
    this.range = range;
    this.next.past = 0;
    this.refresh();
  }

  // unlock goes on with a token.
  unlock() {
    this.locked = false;
    this.fails = 0;
    this.listening = 0;
    this.next = { why: 0, recent: 0, past: 0, config: 0, me: 0 };
    this.refresh();
    this.wake?.();
  }

  async poll() {
    if (this.busy || this.locked) return;
    this.busy = true;
    this.again = false;
    this.asked = Date.now();
    try {
      const first = this.fails === 0 && this.next.past === 0 && !document.hidden ? this.history() : null; // beside the status: charts should not wait for the queue
      first?.catch(() => {}); // it is told below
      const status = await get('/v1/status');
      this.fails = 0;
      this.page.status(status);
      await first;
      await this.rest(status);
    } catch (e) {
      this.failed(e);
    }
    this.busy = false;
    if (this.locked) return;
    let wait = document.hidden ? hiddenEvery : second;
    if (this.fails > 0) wait = Math.min(slowest, second * 2 ** (this.fails - 1)) * (0.75 + Math.random() / 2);
    else if (this.again) wait = soonest; // a burst of events is one question
    this.timer = setTimeout(() => this.poll(), wait);
  }

  // rest asks for what need not be asked for every time. It may fail: the status was read.
  async rest(status) {
    const waits = (status.resources ?? []).some((r) => Object.values(r.waiting ?? {}).some((n) => n > 0));
    let asked = !waits;
    try {
      if (!waits) {
        this.page.why([]);
      } else if (Date.now() >= this.next.why) {
        asked = true;
        const began = Date.now();
        const why = await get('/v1/why?limit=' + mostWaiting);
        // A queue of thousands takes its time: never more than a tenth of it.
        this.next.why = Date.now() + Math.max(whyEvery, 10 * (Date.now() - began)) - second / 2;
        this.page.why(why.waiting ?? []);
      }
      if (Date.now() >= this.next.recent) {
        this.next.recent = Date.now() + recentEvery - second / 2;
        this.page.recent(await get('/v1/recent?limit=100'));
      }
      if (Date.now() >= this.next.past && !document.hidden) {
        await this.history();
      }
      if (Date.now() >= this.next.me) {
        this.next.me = Date.now() + meEvery;
        this.page.me(await get('/v1/me'));
      }
      if (Date.now() >= this.next.config) {
        this.next.config = Date.now() + configEvery;
        this.page.config(await get('/v1/config'));
      }
      if (asked) this.page.partial(null);
    } catch (e) {
      if (e instanceof Refused && e.status === 401) throw e;
      this.page.partial(e);
    }
  }

  // history asks for the chosen part of the past.
  async history() {
    const range = this.range;
    this.next.past = Date.now() + pastEvery[range];
    const answer = await get('/v1/history?since=' + range + '&events=500');
    if (range === this.range) this.page.past(answer);
    else this.again = true;
  }

  failed(e) {
    if (e instanceof Refused && e.status === 401) {
      if (e.sent !== token()) return; // another one has been given meanwhile
      this.locked = true;
      this.page.locked();
      return;
    }
    this.fails++;
    this.page.failed(e);
  }

  // follow listens to events for as long as the page is open.
  async follow() {
    for (;;) {
      try {
        await listen('/v1/events', () => {
          if (this.listening > 0) this.refresh(); // something was missed
          this.listening = 0;
          this.page.link(true);
        }, (event) => {
          this.page.event(event);
          if (!quiet.has(event.event) && !document.hidden) this.refresh();
        });
      } catch (e) {
        if (e instanceof Refused && e.status === 401) this.failed(e);
      }
      this.page.link(false);
      this.listening++;
      const wait = Math.min(slowest, second * 2 ** Math.min(this.listening - 1, 5)) * (0.75 + Math.random() / 2);
      await new Promise((go) => {
        this.wake = go;
        if (!this.locked) setTimeout(go, wait);
      });
    }
  }
}
