// Who waits for a resource, by class, and when they are expected to go.

import { bdi, clean, el, keyed, mark, name, put } from './dom.js';
import { at, count, span, until } from './format.js';

const most = 25; // of those who wait, by name

// makeQueue makes the part of a card that shows a queue.
export function makeQueue() {
  const classes = el('tbody');
  const table = el('table', { class: 'queue' },
    el('thead', {}, el('tr', {}, ...['class', 'waiting', 'next', 'last'].map((t) => el('th', { scope: 'col' }, t)))), classes);
  const list = el('ol', { class: 'waiters', tabindex: '0' });
  const more = el('p', { class: 'dim more' });
  const who = el('details', {}, el('summary', {}, 'Who waits'), list, more);
  return { root: el('div', { class: 'queues' }, table, who), table, classes, who, list, more };
}

export function showQueue(q, waiting, why, now) {
  const total = Object.values(waiting).reduce((n, m) => n + m, 0);
  mark(q.root, 'hidden', total > 0 ? null : '');
  if (total === 0) return;
  const rows = Object.keys(waiting).sort().map((c) => ({ c, n: waiting[c], ...range(why, c) }));
  const listed = new Map();
  for (const w of why) listed.set(w.class, (listed.get(w.class) ?? 0) + 1);
  keyed(q.classes, rows, (r) => r.c, makeClass, (m, r) => {
    name(m.c, r.c, 20);
    put(m.n, count(r.n));
    put(m.next, r.n > 0 ? when(r.next, now) : '');
    put(m.last, r.n > 0 ? when(r.last, now, (listed.get(r.c) ?? 0) < r.n) : '');
  });
  mark(q.who, 'hidden', why.length > 0 ? null : '');
  const shown = q.who.open ? why.slice(0, most) : []; // nobody looks
  keyed(q.list, shown, (w) => w.ticket, makeWaiter, (m, w) => {
    name(m.agent, w.agent, 60);
    put(m.text, ' ' + clean(w.class, 20) + ', ' + reason(w, now));
  });
  put(q.more, q.who.open && total > shown.length ? 'and ' + count(total - shown.length) + ' more' : '');
}

function makeClass() {
  const m = { c: bdi(), n: el('td'), next: el('td'), last: el('td') };
  m.root = el('tr', {}, el('th', { scope: 'row' }, m.c), m.n, m.next, m.last);
  return m;
}

function makeWaiter() {
  const m = { agent: bdi(), text: el('span') };
  m.root = el('li', {}, m.agent, m.text);
  return m;
}

// when writes an expected time. Of a queue too long to be listed the last is not known: it is later than those that are.
function when(t, now, later) {
  if (t === null) return 'not known';
  const text = t <= now ? 'now' : 'in ' + span(t - now);
  return later ? 'later than ' + text : text;
}

// range is when the first and the last of a class are expected to go; null where nobody knows.
function range(why, c) {
  let next = null;
  let last = null;
  for (const w of why) {
    const t = w.class === c ? at(w.expected_at) : null;
    if (t === null) continue;
    if (next === null || t < next) next = t;
    if (last === null || t > last) last = t;
  }
  return { next, last };
}

// Reasons as the gate has them, in words.
const because = {
  limit: 'the limit is used up', order: 'others are before it', paused: 'everybody is paused', probe: 'one request is trying first',
  ramp: 'the pool is ramping up', light: 'the light holds its class', share: 'the rest is kept for other classes',
  reserve: 'the rest is kept for a person', pace: 'its class is paced', breaker: 'the breaker slows its class', slots: 'no slot is free',
};

// reason says why one waits, who is in the way, and until when.
export function reason(w, now) {
  let text = because[w.reason] ?? clean(w.reason || 'waits', 80);
  if (w.limit) text += ' (' + clean(w.limit, 40) + ')';
  const by = (w.held_by ?? []).slice(0, 3).map((n) => '\u2068' + clean(n, 40) + '\u2069');
  if (by.length > 0) text += ', held by ' + by.join(', ') + (w.held_by.length > 3 ? ' and others' : '');
  const t = until(w.expected_at, now);
  if (t) text += ', expected ' + t;
  return w.cheaper_model ? text + '; \u2068' + clean(w.cheaper_model, 40) + '\u2069 would go now, for less' : text;
}

// byResource sorts a queue by resource, whose name is what a ticket begins with.
export function byResource(waiting) {
  const map = new Map();
  for (const w of waiting) {
    const id = String(w.ticket ?? '');
    const resource = w.resource ?? id.slice(0, Math.max(0, id.lastIndexOf('.')));
    if (!map.has(resource)) map.set(resource, []);
    map.get(resource).push(w);
  }
  return map;
}
