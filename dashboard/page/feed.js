// When the page asks for what. One question is under way at a time; the rest waits for its turn.

import { get, listen, Refused, token } from './api.js';

const second = 1000;
const hiddenEvery = 15 * second;
const slowest = 15 * second; // between tries while nobody answers
const reportEvery = 30 * second;
const whyEvery = 2 * second;
const meEvery = 300 * second; // a reload may change what a token allows
const mostWaiting = 1000; // of those who wait, by name

// Events after which what is shown is no longer true.
const telling = new Set(['pause', 'resume', 'throttled', 'store_lost', 'store_back', 'lease_lost', 'taken_over', 'budget']);

// Feed keeps data up to date and tells the page of it: status, why, report, me, event, link.
export class Feed {
  constructor(page) {
    this.page = page;
    this.fails = 0;
    this.timer = 0;
    this.busy = false;
    this.again = false;
    this.locked = false; // a token is asked for
    this.next = { why: 0, report: 0, me: 0 };
    this.listening = 0; // tries in a row
    this.wake = null;
  }

  start() {
    document.addEventListener('visibilitychange', () => { if (!document.hidden) this.refresh(); });
    addEventListener('online', () => this.refresh());
    this.poll();
    this.follow();
  }

  // refresh asks at once, or as soon as the question under way is answered.
  refresh() {
    if (this.busy) {
      this.again = true;
      return;
    }
    clearTimeout(this.timer);
    this.poll();
  }

  // unlock goes on with a token.
  unlock() {
    this.locked = false;
    this.fails = 0;
    this.listening = 0;
    this.next = { why: 0, report: 0, me: 0 };
    this.refresh();
    this.wake?.();
  }

  async poll() {
    if (this.busy || this.locked) return;
    this.busy = true;
    this.again = false;
    try {
      const status = await get('/v1/status');
      this.fails = 0;
      this.page.status(status);
      await this.rest(status);
    } catch (e) {
      this.failed(e);
    }
    this.busy = false;
    if (this.locked) return;
    let wait = document.hidden ? hiddenEvery : second;
    if (this.fails > 0) wait = Math.min(slowest, second * 2 ** (this.fails - 1)) * (0.75 + Math.random() / 2);
    else if (this.again) wait = second / 10; // a burst of events is one question
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
      if (Date.now() >= this.next.me) {
        this.page.me(await get('/v1/me'));
        this.next.me = Date.now() + meEvery;
      }
      if (Date.now() >= this.next.report && !document.hidden) {
        this.next.report = Date.now() + reportEvery;
        this.page.report(await get('/v1/report?since=24h'));
      }
      if (asked) this.page.partial(null);
    } catch (e) {
      if (e instanceof Refused && e.status === 401) throw e;
      this.page.partial(e);
    }
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
          if (telling.has(event.event) && !document.hidden) this.refresh();
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
