// The table of resources: those in use, worst first. A row opens to all that is known of one.

import { bdi, clean, el, keyed, mark, name, put, wide } from './dom.js';
import { at, count, some, spent } from './format.js';
import { makeSpark, showSpark } from './chart.js';
import { limitName, resets, tightest } from './charts.js';
import { Detail } from './detail.js';
import { calm, makeState, rank, showState, stateOf, untilWords, usedUp, waiting } from './state.js';

export const keyOf = (r) => r.name + '\u0000' + (r.key ?? '');

const columns = ['resource', 'state', 'tightest limit', 'sends/min', 'waiting', '429', 'errors', 'spent'];

export class Resources {
  constructor(context) {
    this.context = context; // control, past, base
    this.number = 0;
    this.head = el('thead', {}, el('tr', {}, ...columns.map((c) => el('th', { scope: 'col' }, c))));
    this.root = el('table', { class: 'resources', 'aria-labelledby': 'h-resources' }, this.head);
    document.getElementById('resources').append(this.root);
    this.unused = document.getElementById('unused');
    this.toggle = el('button', { type: 'button', class: 'quiet', 'aria-expanded': 'false' });
    this.words = el('span');
    this.unused.append(this.words, ' ', this.toggle);
    this.all = false;
    this.toggle.addEventListener('click', () => {
      this.all = !this.all;
      this.context.again();
    });
  }

  // used reports that a resource was used in the chosen time, or is not simply idle.
  used(r) {
    if (stateOf(r) !== 'idle' || waiting(r) > 0) return true;
    const past = this.context.past;
    const s = past.of(r.name);
    if (s && (s.total.sends || s.total.elsewhere || s.total.throttled)) return true;
    const last = at(r.last_send);
    return last !== null && past.answer !== null && last >= past.from;
  }

  show(resources, why, recent, now) {
    const sent = new Map((recent?.resources ?? []).map((m) => [m.name, m]));
    const split = resources.map((r) => ({ r, used: this.used(r), sends: sent.get(r.name)?.sends ?? 0 }));
    const order = (a, b) => b.used - a.used || rank(a.r) - rank(b.r) || b.sends - a.sends || (a.r.name < b.r.name ? -1 : 1);
    const left = split.filter((x) => !x.used);
    const some1 = split.length > left.length;
    const all = this.all || !some1 && left.length <= 3;
    const shown = split.filter((x) => x.used || all).sort(order);
    mark(this.root, 'hidden', shown.length > 0 ? null : '');
    keyed(this.root, shown, (x) => keyOf(x.r), (x) => this.make(x.r), (m, x) => this.update(m, x, sent.get(x.r.name), why.get(x.r.name) ?? [], now), this.head);
    mark(this.unused, 'hidden', left.length > 0 && !(all && !this.all) ? null : '');
    put(this.words, left.length === 0 ? '' : (some1 ? some(left.length, 'more resource is', 'more resources are') : some(left.length, 'resource is', 'resources are')) + ' ready: ' + left.slice(0, 8).map((x) => '\u2068' + clean(x.r.name, 24) + '\u2069').join(', ') + (left.length > 8 ? ' …' : ''));
    put(this.toggle, this.all ? 'Hide unused' : 'Show unused');
    mark(this.toggle, 'aria-expanded', String(this.all));
  }

  make(r) {
    const id = 'r' + this.number++;
    const m = { title: bdi(), state: makeState(), until: el('span', { class: 'dim until' }), reason: bdi(), limit: bdi(), nums: el('span', { class: 'nums' }), part: el('i'), resets: el('small'),
      spark: makeSpark(), sends: el('span', { class: 'nums' }), waits: el('td', { 'data-label': 'waiting' }), hits: el('td', { 'data-label': '429', class: 'num' }), errors: el('td', { 'data-label': 'errors', class: 'num' }), usd: el('td', { 'data-label': 'spent', class: 'num' }), key: el('small', { class: 'dim' }), mode: el('small', { class: 'dim' }) };
    m.reason.classList.add('reason');
    m.button = el('button', { type: 'button', class: 'row-button', 'aria-expanded': 'false', 'aria-controls': id }, el('span', { class: 'arrow', 'aria-hidden': 'true' }), m.title);
    m.bar = el('span', { class: 'bar', 'aria-hidden': 'true' }, m.part);
    m.main = el('tr', { class: 'main' },
      el('th', { scope: 'row' }, m.button, m.key, m.mode),
      el('td', { 'data-label': 'state', class: 'c-state' }, el('span', { class: 'state-line' }, m.state.root, m.until), m.reason),
      el('td', { 'data-label': 'tightest limit', class: 'c-limit' }, el('span', { class: 'limit-line' }, m.limit, m.nums), m.bar, m.resets),
      el('td', { 'data-label': 'sends/min', class: 'c-sends' }, m.spark.root, m.sends),
      m.waits, m.hits, m.errors, m.usd);
    m.cell = el('td', { colspan: columns.length });
    m.more = el('tr', { class: 'detail', id, hidden: '' }, m.cell);
    m.root = el('tbody', { class: 'resource' }, m.main, m.more);
    m.button.addEventListener('click', () => {
      const open = m.more.hasAttribute('hidden');
      mark(m.more, 'hidden', open ? null : '');
      mark(m.button, 'aria-expanded', String(open));
      if (open && !m.detail) {
        m.detail = new Detail(this.context);
        m.cell.append(m.detail.root);
      }
      this.context.again();
    });
    m.seen = r;
    return m;
  }

  update(m, { r, sends }, minute, why, now) {
    const past = this.context.past;
    const s = past.of(r.name);
    const state = stateOf(r);
    mark(m.root, 'data-state', state);
    name(m.title, r.name, 60);
    put(m.key, r.key ? 'key ' + clean(r.key, 12) : '');
    put(m.mode, [r.mode === 'observe' ? 'observes only' : '', r.configured === false ? 'not in this configuration' : ''].filter(Boolean).join(', '));
    showState(m.state, state);
    put(m.until, untilWords(r, now));
    name(m.reason, calm(r) && !usedUp(r) ? '' : r.reason ?? '', 200);
    const t = tightest(r);
    put(m.limit, t ? limitName(t.limit) : r.outage ? 'not known now' : (r.limits ?? []).length ? 'not learned yet' : 'none');
    put(m.nums, t ? count(t.limit.used) + ' / ' + count(t.limit.limit) : '');
    mark(m.bar, 'hidden', t ? null : '');
    if (t) wide(m.part, Math.min(1, t.part));
    put(m.resets, t ? resets(t.limit, now) : '');
    put(m.sends, count(sends));
    if (m.version !== past.version && past.answer) {
      m.version = past.version;
      showSpark(m.spark, past.series(r.name).sends);
    }
    const classes = Object.entries(r.waiting ?? {}).filter(([, n]) => n > 0).sort(([a], [b]) => (a < b ? -1 : 1));
    put(m.waits, r.outage ? '–' : classes.length ? classes.slice(0, 4).map(([c, n]) => clean(c, 12) + ' ' + count(n)).join(' · ') : '0');
    mark(m.waits, 'data-zero', classes.length ? null : '');
    this.figure(m.hits, s?.total.throttled);
    this.figure(m.errors, s?.total.errors);
    spent(m.usd, s?.total, mark, put);
    if (!m.more.hasAttribute('hidden') && m.detail) m.detail.show(r, why, now);
  }

  figure(cell, n) {
    put(cell, this.context.past.answer ? count(n ?? 0) : '–');
    mark(cell, 'data-zero', n ? null : '');
  }
}
