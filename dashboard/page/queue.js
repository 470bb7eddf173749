// Who waits for a resource, by class, and when they are expected to go.

import { bdi, clean, el, keyed, mark, name, put, words } from './dom.js';
import { at, count, span, until } from './format.js';

const most = 25; // of those who wait, by name

// makeQueue makes the part of a resource's details that shows a queue.
export function makeQueue() {
  const classes = el('tbody');
  const table = el('table', { class: 'queue' },
    el('thead', {}, el('tr', {}, ...['class', 'waiting', 'next goes', 'last goes'].map((t) => el('th', { scope: 'col' }, t)))), classes);
  const list = el('ol', { class: 'waiters', tabindex: '0', 'aria-label': 'Who waits' });
  const more = el('p', { class: 'dim more' });
  return { root: el('div', { class: 'queues' }, el('h3', {}, 'Queue'), table, list, more), table, classes, list, more };
}

export function showQueue(q, waiting, why, now) {
  const total = Object.values(waiting).reduce((n, m) => n + m, 0);
  mark(q.root, 'hidden', total > 0 ? null : '');
  if (total === 0) return;
  const rows = Object.keys(waiting).sort().filter((c) => waiting[c] > 0).map((c) => ({ c, n: waiting[c], ...range(why, c) }));
  const listed = new Map();
  for (const w of why) listed.set(w.class, (listed.get(w.class) ?? 0) + 1);
  keyed(q.classes, rows, (r) => r.c, makeClass, (m, r) => {
    name(m.c, r.c, 20);
    put(m.n, count(r.n));
    put(m.next, goes(r.next, now));
    put(m.last, goes(r.last, now, (listed.get(r.c) ?? 0) < r.n));
  });
  const shown = why.slice(0, most);
  keyed(q.list, shown, (w) => w.ticket, makeWaiter, (m, w) => {
    name(m.agent, w.agent, 60);
    put(m.text, ' ' + clean(w.class, 20) + ': ' + reason(w, now));
  });
  put(q.more, total > shown.length ? 'and ' + count(total - shown.length) + ' more' : '');
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

// goes writes an expected time. Of a queue too long to be listed the last is not known: it is later than those that are.
function goes(t, now, later) {
  if (t === null) return 'not known';
  const text = t <= now ? 'now' : 'in ' + span(t - now);
  return later ? 'later than ' + text : text;
}

// range is when the first and the last of a class are expected to go; null where it is not known.
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
const because = words({
  limit: 'the limit is full', order: 'others are before it', paused: 'the resource is paused', probe: 'one request tests the pause first',
  ramp: 'few go at first after a pause', light: 'the light holds its class', share: 'the rest is kept for other classes',
  reserve: 'the rest is kept for a person', pace: 'its class is paced', breaker: 'the breaker slows its class', slowed: 'slowed by a budget that has to last until its reset', slots: 'no slot is free',
});

// reason says why one waits, who is in the way, and until when.
export function reason(w, now) {
  let text = because[w.reason] ?? clean(w.reason || 'waits', 80);
  if (w.reason === 'paused' && w.scope) text = clean(w.scope, 80) + ' is paused';
  if (w.limit) text += ' (' + clean(w.limit, 40) + ')';
  const by = (w.held_by ?? []).slice(0, 3).map((n) => '\u2068' + clean(n, 40) + '\u2069');
  if (by.length > 0) text += ', held by ' + by.join(', ') + (w.held_by.length > 3 ? ' and others' : '');
  const held = at(w.held_until);
  if (held !== null && held > now) text += ' for at most ' + span(held - now);
  const t = until(w.expected_at, now);
  if (t) text += ', expected ' + t;
  return w.cheaper_model ? text + '; \u2068' + clean(w.cheaper_model, 40) + '\u2069 would go now, for less' : text;
}

// resourceOf is what a request waits for: what its ticket begins with.
export function resourceOf(w) {
  const id = String(w.ticket ?? '');
  return w.resource ?? id.slice(0, Math.max(0, id.lastIndexOf('.')));
}

// byResource sorts a queue by resource.
export function byResource(waiting) {
  const map = new Map();
  for (const w of waiting) {
    const resource = resourceOf(w);
    if (!map.has(resource)) map.set(resource, []);
    map.get(resource).push(w);
  }
  return map;
}
