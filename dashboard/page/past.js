// The history: series of the chosen time in steps of equal length, and the pauses in it.

import { at } from './format.js';

export const ranges = { '15m': '15 min', '1h': '1 h', '24h': '24 h', '7d': '7 d' };

export class Past {
  constructor() {
    this.range = '1h';
    this.answer = null;
    this.read = 0;
    this.version = 0; // changes with every answer
  }

  // words says which time it is: in 1 h.
  get words() { return ranges[this.range]; }

  set(answer) {
    this.answer = answer;
    this.version++;
    this.step = answer.step_ms;
    this.from = at(answer.since) ?? 0;
    this.to = at(answer.until) ?? 0;
    this.length = Math.max(1, Math.floor((this.to - this.from) / this.step) + 1);
    this.byName = new Map((answer.resources ?? []).map((s) => [s.name, s]));
    this.agents = new Map((answer.agents ?? []).map((s) => [s.name, s]));
    this.cache = new Map();
  }

  // of is what was counted of a resource; null if nothing was.
  of(resource) { return this.byName?.get(resource) ?? null; }

  // total adds up a figure of all resources.
  total(figure) {
    return (this.answer?.resources ?? []).reduce((n, s) => n + (s.total?.[figure] ?? 0), 0);
  }

  // empty reports that there was nothing at all.
  get empty() { return !this.answer || (this.answer.resources ?? []).every((s) => !(s.total?.sends || s.total?.elsewhere)); }

  // series is one resource, or all where none is named, in steps: what was sent by class in a minute, refusals, errors, latency.
  series(resource) {
    if (!this.answer) return null;
    const key = resource ?? '\u0000all';
    let s = this.cache.get(key);
    if (!s) this.cache.set(key, (s = this.build(resource)));
    return s;
  }

  build(resource) {
    const n = this.length;
    const zeros = () => new Float64Array(n);
    const s = { classes: new Map(), sends: zeros(), elsewhere: zeros(), throttled: zeros(), errors: zeros(), usd: zeros(), p50: new Array(n).fill(null), p95: new Array(n).fill(null) };
    const answers = zeros();
    const perMinute = 60_000 / this.step;
    const all = resource === null || resource === undefined ? this.answer.resources ?? [] : [this.of(resource)].filter(Boolean);
    for (const one of all) {
      for (const p of one.points ?? []) {
        const i = Math.floor(((at(p.at) ?? 0) - this.from) / this.step);
        if (i < 0 || i >= n) continue;
        s.sends[i] += (p.sends ?? 0) * perMinute;
        s.elsewhere[i] += (p.elsewhere ?? 0) * perMinute;
        s.throttled[i] += p.throttled ?? 0;
        s.errors[i] += p.errors ?? 0;
        s.usd[i] += p.usd ?? 0;
        let rest = p.sends ?? 0;
        for (const [c, sent] of Object.entries(p.classes ?? {})) {
          if (!s.classes.has(c)) s.classes.set(c, zeros());
          s.classes.get(c)[i] += sent * perMinute;
          rest -= sent;
        }
        if (rest > 0) {
          if (!s.classes.has('')) s.classes.set('', zeros());
          s.classes.get('')[i] += rest * perMinute;
        }
        if (p.answers) {
          const before = answers[i];
          answers[i] += p.answers;
          s.p50[i] = ((s.p50[i] ?? 0) * before + (p.latency_p50_ms ?? 0) * p.answers) / answers[i];
          s.p95[i] = Math.max(s.p95[i] ?? 0, p.latency_p95_ms ?? 0);
        }
      }
    }
    return s;
  }

  // pauses are the times in which a resource, or any, was held: the part of it is said.
  pauses(resource, live) {
    const open = new Map();
    const list = [];
    const events = [...(this.answer?.events ?? []), ...live].filter((e) => e.event === 'pause' || e.event === 'resume')
      .map((e) => ({ e, t: at(e.time) ?? 0 })).sort((a, b) => a.t - b.t);
    for (const { e, t } of events) {
      if (resource !== null && e.resource !== resource) continue;
      const key = e.resource + '\u0000' + (e.scope ?? '');
      if (e.event === 'resume') {
        for (const p of list) if (p.resource === e.resource && p.to > t) p.to = t;
        continue;
      }
      const end = at(e.until) ?? t + (e.for_ms ?? 0);
      const before = open.get(key);
      if (before && before.to >= t) {
        before.to = Math.max(before.to, end);
        continue;
      }
      const p = { resource: e.resource, scope: e.scope ?? '', from: t, to: end, why: e.reason ?? '' };
      open.set(key, p);
      list.push(p);
    }
    return list.filter((p) => p.to > this.from && p.from < this.to && p.to > p.from);
  }
}
