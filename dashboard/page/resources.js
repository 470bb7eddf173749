// The resources: a light for each at the top, and a card with everything else.

import { bdi, clean, el, keyed, mark, name, put, wide } from './dom.js';
import { ago, at, count, until } from './format.js';
import { charted, draw, History, words } from './chart.js';
import { makeQueue, showQueue } from './queue.js';

const lights = new Set(['green', 'amber', 'red']);
const roomy = 12; // with more resources, cards that have nothing to tell are small
const mostLimits = 8; // of a card: where each agent has its own there are hundreds

const keyOf = (r) => r.name + '\u0000' + (r.key ?? '');

// lightOf is the light as one of three words, or off where the store is out of reach and nobody knows.
export function lightOf(r) {
  if (r.outage) return 'off';
  return lights.has(r.light) ? r.light : 'off';
}

// pausedNow reports that everybody is held.
export function pausedNow(r, now) {
  const t = at(r.paused_until);
  return t !== null && t > now;
}

// waiting is how many wait, of all classes.
export function waiting(r) {
  return Object.values(r.waiting ?? {}).reduce((n, m) => n + m, 0);
}

export class Resources {
  constructor(control) {
    this.control = control;
    this.strip = document.getElementById('strip');
    this.cards = document.getElementById('resources');
    this.label = document.getElementById('calm-label');
    this.details = document.getElementById('calm');
    this.histories = new Map();
    this.number = 0;
    // Charts out of sight are not drawn.
    this.seen = new Set();
    this.drawn = new WeakMap(); // what each chart is of
    this.now = 0;
    this.watch = new IntersectionObserver((list) => {
      for (const e of list) {
        if (!e.isIntersecting) {
          this.seen.delete(e.target);
          continue;
        }
        this.seen.add(e.target);
        const h = this.drawn.get(e.target);
        if (h) draw(e.target, h, this.now); // and not with the next answer
      }
    }, { rootMargin: '200px' });
  }

  // changed calls back when somebody wants to see more, or less.
  changed(again) {
    this.details.addEventListener('change', again);
  }

  // note remembers a status for the charts.
  note(resources, now) {
    const there = new Set();
    for (const r of resources) {
      const key = keyOf(r);
      there.add(key);
      if (r.outage) continue; // its numbers are unknown, not 0
      let h = this.histories.get(key);
      if (!h) this.histories.set(key, (h = new History()));
      h.add(r, charted(r.limits), now);
    }
    for (const key of this.histories.keys()) if (!there.has(key)) this.histories.delete(key);
  }

  show(resources, why, now) {
    this.now = now;
    this.small = resources.length > roomy && !this.details.checked;
    mark(this.label, 'hidden', resources.length > roomy ? null : '');
    keyed(this.cards, resources, keyOf, (r) => this.make(r), (row, r) => this.update(row, r, why.get(r.name) ?? [], now));
    keyed(this.strip, resources, keyOf, (r) => this.makeChip(r), (row, r) => this.updateChip(row, r, now));
    mark(this.strip, 'hidden', resources.length < 2 ? '' : null); // one card is its own light
  }

  makeChip(r) {
    const text = bdi();
    const state = el('span', { class: 'state' });
    const link = el('a', { class: 'chip' }, el('span', { class: 'light', 'aria-hidden': 'true' }), text, state);
    const card = [...this.cards.children].find((c) => c.sluiceKey === keyOf(r));
    link.href = '#' + (card?.id ?? '');
    return { root: el('li', {}, link), link, text, state };
  }

  updateChip(row, r, now) {
    mark(row.link, 'data-light', lightOf(r));
    name(row.text, r.name, 40);
    const n = waiting(r);
    let state = lightOf(r) === 'off' ? 'unknown' : lightOf(r);
    if (pausedNow(r, now)) state = 'paused';
    put(row.state, n > 0 ? state + ', ' + count(n) + ' wait' : state);
  }

  make(r) {
    const row = { seen: r };
    const title = bdi();
    const light = el('span', { class: 'light', 'aria-hidden': 'true' });
    const word = el('span', { class: 'word' });
    const mode = el('span', { class: 'badge' });
    const key = el('code', { class: 'dim key' });
    const button = el('button', { type: 'button', class: 'quiet' });
    button.addEventListener('click', () => this.control(row.seen));
    const canvas = el('canvas', { class: 'chart', role: 'img' });
    this.watch.observe(canvas);
    const root = el('article', { class: 'card', id: 'r' + this.number++, tabindex: '-1' });
    root.sluiceKey = keyOf(r);
    const notes = el('ul', { class: 'gates' });
    const legend = el('p', { class: 'legend dim' });
    const facts = el('dl', { class: 'facts' });
    const limits = el('div', { class: 'limits' });
    const more = el('p', { class: 'dim more' });
    const queue = makeQueue();
    root.append(
      el('header', {}, light, el('h3', {}, title), word, mode, key, button),
      notes, canvas, legend, facts, limits, more, queue.root,
    );
    return Object.assign(row, { root, light, title, word, mode, key, button, canvas, notes, legend, facts, limits, more, queue });
  }

  update(row, r, why, now) {
    row.seen = r;
    const light = lightOf(r);
    const paused = pausedNow(r, now);
    mark(row.root, 'data-light', light);
    mark(row.root, 'data-paused', paused ? '' : null);
    name(row.title, r.name, 80);
    put(row.word, paused ? 'paused' : light === 'off' ? 'unknown' : light);
    put(row.mode, r.mode === 'observe' ? 'observe' : '');
    put(row.key, r.key ? 'key ' + clean(r.key, 12) : '');
    const held = paused || (r.gates ?? []).some((g) => g.phase === 'paused');
    put(row.button, held ? 'Resume' : 'Pause');
    mark(row.button, 'aria-label', (held ? 'Resume ' : 'Pause ') + clean(r.name, 80));
    const said = remarks(r, now);
    mark(row.root, 'data-calm', this.small && light === 'green' && said.length === 0 && waiting(r) === 0 ? '' : null);
    keyed(row.notes, said, (n) => n.key, makeRemark, updateRemark);

    const history = this.histories.get(keyOf(r)) ?? new History();
    const limit = charted(r.limits);
    const legend = words(history, limit, now);
    const unknown = r.outage && history.bars.length === 0; // there is nothing to show, which is not 0
    for (const part of [row.canvas, row.legend]) mark(part, 'hidden', unknown ? '' : null);
    mark(row.facts, 'hidden', r.outage ? '' : null);
    mark(row.canvas, 'aria-label', 'Sends in the last ten minutes: ' + legend);
    put(row.legend, legend);
    this.drawn.set(row.canvas, history);
    if (this.seen.has(row.canvas)) draw(row.canvas, history, now);

    keyed(row.facts, facts(r, now), (f) => f.what, makeFact, updateFact);
    const list = limitsOf(r);
    keyed(row.limits, list.shown, (l) => l.name + '\u0000' + l.scope, makeLimit, (m, l) => updateLimit(m, l, now));
    put(row.more, list.left > 0 ? 'and ' + count(list.left) + (list.left === 1 ? ' more limit' : ' more limits') + ' with less used' : '');
    showQueue(row.queue, r.waiting ?? {}, why, now);
  }
}

// remarks are what is out of the ordinary: pauses of all or a part, probes, ramps, an outage.
function remarks(r, now) {
  const list = [];
  if (r.outage) {
    list.push({ key: 'outage', kind: 'bad', say: 'The store cannot be reached: ' + modes(r.outage.mode), until: '', text: r.outage.why });
  }
  let whole = false;
  for (const g of r.gates ?? []) {
    if (g.phase === 'paused' && !g.scope) whole = true;
    const what = { paused: 'Paused', probing: 'Probing: one request at a time', ramping: 'Ramping up' }[g.phase] ?? clean(g.phase, 20);
    list.push({ key: g.scope + '\u0000' + g.phase, kind: g.phase === 'paused' ? 'bad' : 'warn', say: what, scope: g.scope, until: g.until,
      text: g.cause + (g.probe_at ? '; one request tries again ' + until(g.probe_at, now) : '') });
  }
  if (!whole && pausedNow(r, now)) list.unshift({ key: 'pause', kind: 'bad', say: 'Paused', until: r.paused_until, text: r.pause_reason });
  for (const l of r.limits ?? []) {
    if (l.breaker && !l.scope) {
      const say = l.breaker === 'open' ? 'Breaker open: lower classes are stopped' : 'Breaker: lower classes are slowed down so that it lasts';
      list.push({ key: 'breaker' + l.name, kind: 'warn', say, scope: l.name, until: '', text: l.gone_at ? 'gone ' + until(l.gone_at, now) + ' at this rate' : '' });
    }
  }
  if (r.silent_members > 0) {
    list.push({ key: 'silent', kind: 'warn', say: count(r.silent_members) + ' of ' + count(r.members) + (r.silent_members === 1 ? ' processes is silent: its share is withheld' : ' processes are silent: their shares are withheld'), until: '', text: '' });
  }
  return list.slice(0, 12).map((n) => ({ ...n, left: n.until ? until(n.until, now).replace(/^in /, '') + ' left' : '' }));
}

function modes(mode) {
  return { share: 'this daemon goes on within its share', closed: 'nobody goes', open: 'everybody goes, uncounted' }[mode] ?? clean(mode, 40);
}

function makeRemark() {
  const m = { say: el('strong'), scope: bdi(), left: el('span', { class: 'left' }), text: bdi() };
  m.root = el('li', {}, m.say, ' ', m.scope, ' ', m.left, ' ', m.text);
  return m;
}

function updateRemark(m, n) {
  mark(m.root, 'class', n.kind);
  put(m.say, n.say);
  name(m.scope, n.scope ?? '', 60);
  put(m.left, n.left === 'now left' ? 'about to end' : n.left);
  name(m.text, n.text ?? '', 200);
}

function facts(r, now) {
  const outside = (r.limits ?? []).filter((l) => l.outside > 0 && !l.scope);
  const last = ago(r.last_429, now);
  return [
    { what: 'in flight', n: count(r.in_flight) },
    { what: 'waiting', n: count(waiting(r)), kind: waiting(r) > 0 ? 'warn' : '' },
    { what: 'sent', n: count(r.sent) },
    { what: '429s in 7 days', n: count(r.throttled_7d), more: last && 'last ' + last, kind: r.consecutive_429 > 0 ? 'bad' : '' },
    { what: 'retries', n: count(r.retried) },
    { what: 'outside use', n: outside.length ? count(outside[0].outside) : '0', more: outside.length ? 'of ' + clean(outside[0].name, 30) : '', kind: outside.length ? 'warn' : '' },
  ];
}

function makeFact(f) {
  const m = { n: el('span'), more: el('small') };
  m.root = el('div', {}, el('dt', {}, f.what), el('dd', {}, m.n, ' ', m.more));
  return m;
}

function updateFact(m, f) {
  mark(m.root, 'class', f.kind || null);
  put(m.n, f.n);
  put(m.more, f.more ?? '');
}

// limitsOf picks the limits to show: everybody's, then the fullest of those that are somebody's.
function limitsOf(r) {
  const all = r.limits ?? [];
  const own = all.filter((l) => l.scope).sort((a, b) => b.used / (b.limit || 1) - a.used / (a.limit || 1));
  const list = [...all.filter((l) => !l.scope), ...own];
  return { shown: list.slice(0, mostLimits), left: Math.max(0, list.length - mostLimits) };
}

function makeLimit() {
  const m = { label: bdi(), scope: bdi(), nums: el('span', { class: 'nums' }), used: el('i'), outside: el('i', { class: 'outside' }), foot: el('span', { class: 'dim foot' }) };
  m.bar = el('div', { class: 'bar', 'aria-hidden': 'true' }, m.used, m.outside);
  m.root = el('div', { class: 'limit' }, el('span', { class: 'what' }, m.label, ' ', m.scope), m.nums, m.bar, m.foot);
  return m;
}

function updateLimit(m, l, now) {
  name(m.label, l.name, 40);
  name(m.scope, l.scope ?? '', 60);
  const size = l.limit > 0 ? l.limit : 0;
  put(m.nums, size ? count(l.used) + ' / ' + count(size) : count(l.used) + ' used, size not known');
  const part = size ? Math.min(1, l.used / size) : 0;
  const outside = size ? Math.min(part, l.outside / size) : 0;
  wide(m.used, part - outside);
  wide(m.outside, outside);
  mark(m.root, 'data-light', lights.has(l.light) ? l.light : null);
  const said = [clean(l.unit, 30) + ', ' + clean(l.kind, 12)];
  if (l.outside > 0) said.push(count(l.outside) + ' by others outside');
  if (l.withheld > 0) said.push(count(l.withheld) + ' withheld');
  if (l.reset_at) said.push('resets ' + until(l.reset_at, now));
  if (l.differs_from) said.push(clean(l.differs_from, 40) + ' states another size');
  put(m.foot, said.join(' · '));
}
