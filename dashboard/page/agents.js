// The agents: who they are, what they have and use, and why they wait.

import { bdi, clean, el, keyed, mark, name, put, wide } from './dom.js';
import { at, count, span, usd } from './format.js';
import { reason } from './queue.js';

const rank = { limited: 0, held: 1, waiting: 2, active: 3 };
const columns = ['agent', 'class', 'state', 'used / allocated', 'lease', 'spend 24 h', 'why'];
const most = 500; // rows: whoever looks for others says whom

export class Agents {
  constructor() {
    this.body = el('div', { role: 'rowgroup', class: 'rows' });
    this.empty = el('p', { class: 'dim more' });
    this.body.tabIndex = 0; // so that keys can scroll it
    const head = el('div', { role: 'row', class: 'agent columns' }, ...columns.map((c) => el('span', { role: 'columnheader' }, c)));
    this.table = el('div', { role: 'table', class: 'agents', 'aria-labelledby': 'h-agents' }, el('div', { role: 'rowgroup' }, head), this.body);
    document.getElementById('agents').append(this.table, this.empty);
    this.filter = document.getElementById('agent-filter');
    this.sort = document.getElementById('agent-sort');
  }

  // changed calls back when somebody wants to see others, or another order.
  changed(again) {
    this.filter.addEventListener('input', again);
    this.sort.addEventListener('change', again);
  }

  show(agents, why, spent, now) {
    const held = new Map(); // the first request of each in a queue
    for (const w of why) if (!held.has(w.agent)) held.set(w.agent, w);
    const text = this.filter.value.trim().toLowerCase();
    const list = agents
      .filter((a) => !text || [a.name, a.user, a.machine, a.class, a.state, a.resource].some((s) => String(s ?? '').toLowerCase().includes(text)))
      .map((a) => ({ ...a, usd: spent.get(a.name) }));
    list.sort(orders[this.sort.value] ?? orders.state);
    keyed(this.body, list.slice(0, most), (a) => a.name + '\u0000' + a.machine, make, (m, a) => update(m, a, held.get(a.name), now));
    mark(this.table, 'hidden', list.length > 0 ? null : '');
    put(this.empty, list.length > most ? 'and ' + count(list.length - most) + (list.length - most === 1 ? ' more agent' : ' more agents') + ': sort or filter to see them' : list.length > 0 ? '' : agents.length > 0 ? 'No agent matches.' : 'No agent is alive. One that asks, or sends a heartbeat, shows up here.');
  }
}

const byName = (a, b) => (a.name < b.name ? -1 : a.name > b.name ? 1 : 0);
const byClass = (a, b) => (a.class < b.class ? -1 : a.class > b.class ? 1 : 0);
const orders = {
  name: byName,
  class: (a, b) => byClass(a, b) || byName(a, b),
  state: (a, b) => (rank[a.state] ?? 9) - (rank[b.state] ?? 9) || byClass(a, b) || byName(a, b),
  used: (a, b) => b.used - a.used || byName(a, b),
  usd: (a, b) => (b.usd ?? 0) - (a.usd ?? 0) || byName(a, b),
};

function make() {
  const m = {
    name: bdi(), where: bdi(), class: el('span', { role: 'cell', class: 'class' }), state: el('span', { class: 'pill' }),
    use: el('span', { class: 'nums' }), part: el('i'), of: bdi(), lease: el('span', { role: 'cell', class: 'lease' }),
    usd: el('span', { role: 'cell', class: 'usd' }), why: el('span', { role: 'cell', class: 'why' }),
  };
  m.bar = el('span', { class: 'bar', 'aria-hidden': 'true' }, m.part);
  m.of.classList.add('dim');
  m.where.classList.add('dim');
  m.root = el('div', { role: 'row', class: 'agent' },
    el('span', { role: 'cell', class: 'who' }, m.name, m.where), m.class, el('span', { role: 'cell' }, m.state),
    el('span', { role: 'cell', class: 'use' }, m.use, ' ', m.of, m.bar), m.lease, m.usd, m.why);
  return m;
}

function update(m, a, waits, now) {
  name(m.name, a.name, 80);
  const where = [a.user, a.machine].filter((s) => s && s !== '-').map((s) => clean(s, 40));
  put(m.where, where.join(' on '));
  put(m.class, clean(a.class, 20));
  put(m.state, clean(a.state, 20));
  mark(m.root, 'data-state', a.state in rank ? a.state : null);
  put(m.use, count(a.used) + (a.allocated > 0 ? ' / ' + count(a.allocated) : ''));
  name(m.of, a.resource ?? '', 40);
  const part = a.allocated > 0 ? Math.min(1, a.used / a.allocated) : 0;
  wide(m.part, part);
  const ends = at(a.lease_expires_at);
  const left = ends === null ? 'none' : ends <= now ? 'over' : span(ends - now);
  put(m.lease, a.leased === false ? 'none, gone in ' + left : left);
  mark(m.lease, 'title', a.leased === false && ends !== null ? 'It sends no heartbeats. Since it has asked, it counts as alive for so long.' : null);
  mark(m.lease, 'data-none', a.leased === false ? '' : null);
  put(m.usd, a.usd === undefined ? '–' : usd(a.usd));
  mark(m.usd, 'data-none', a.usd ? null : '');
  put(m.why, because(a, waits, now));
  mark(m.why, 'title', m.why.textContent.length > 60 ? m.why.textContent : null);
}

// chain writes names that wait for each other; each is kept apart from its neighbours' direction of writing.
export function chain(names) {
  const all = names.slice(0, 8).map((n) => '\u2068' + clean(n, 40) + '\u2069');
  return all.join(' → ') + (names.length > 8 ? ' → …' : '');
}

function because(a, waits, now) {
  const said = [];
  const names = a.pause_chain ?? [];
  if (names.length > 0) said.push('no new work: ' + chain(names));
  if (waits) said.push(reason(waits, now));
  if (said.length === 0 && (a.waits_for ?? []).length > 0) said.push('depends on ' + a.waits_for.slice(0, 5).map((n) => '\u2068' + clean(n, 40) + '\u2069').join(', '));
  return said.join('; ');
}
