// The agents: what each is doing now, what it may use, what it used and spent.

import { bdi, clean, el, keyed, mark, name, put, wide, words } from './dom.js';
import { at, count, some, span, spent } from './format.js';
import { reason, resourceOf } from './queue.js';

const rank = words({ limited: 0, held: 1, waiting: 2, active: 3 });
const columns = ['agent', 'class', 'doing now', 'sends/min', 'share', 'tokens', 'spent'];
const most = 500; // rows: whoever looks for others says whom

export class Agents {
  constructor(again) {
    this.body = el('tbody');
    this.empty = el('p', { class: 'dim more' });
    this.table = el('table', { class: 'agents', 'aria-labelledby': 'h-agents' },
      el('thead', {}, el('tr', {}, ...columns.map((c) => el('th', { scope: 'col' }, c)))), this.body);
    this.box = el('div', { class: 'scroll tall', tabindex: '0', role: 'region', 'aria-label': 'Table of agents' }, this.table);
    document.getElementById('agents').append(this.box, this.empty);
    this.title = document.getElementById('h-agents');
    this.filter = document.getElementById('agent-filter');
    this.class = document.getElementById('agent-class');
    this.state = document.getElementById('agent-state');
    this.sort = document.getElementById('agent-sort');
    this.classes = '';
    this.filter.addEventListener('input', again);
    for (const s of [this.class, this.state, this.sort]) s.addEventListener('change', again);
  }

  show(agents, why, past, recent, now, unknown) {
    const held = new Map(); // the first request of each in a queue
    for (const w of why) if (!held.has(w.agent)) held.set(w.agent, w);
    const minute = new Map((recent?.agents ?? []).map((m) => [m.name, m.sends]));
    put(this.title, agents.length ? 'Agents (' + count(agents.length) + ')' : 'Agents');
    this.offer(agents);
    const text = this.filter.value.trim().toLowerCase();
    const list = [];
    for (const a of agents) {
      if (this.class.value && a.class !== this.class.value) continue;
      if (this.state.value && a.state !== this.state.value) continue;
      if (text && ![a.name, a.user, a.machine, a.resource].some((s) => String(s ?? '').toLowerCase().includes(text))) continue;
      const total = past.agents?.get(a.name)?.total;
      list.push({ a, total, sends: minute.get(a.name) ?? 0, usd: total?.usd ?? 0, waits: held.get(a.name) });
    }
    list.sort(orders[this.sort.value] ?? orders.state);
    keyed(this.body, list.slice(0, most), (x) => x.a.name + '\u0000' + x.a.machine, make, (m, x) => update(m, x, now));
    mark(this.box, 'hidden', list.length > 0 ? null : '');
    put(this.empty, list.length > most ? 'and ' + some(list.length - most, 'more agent') + ': sort or filter to see them' : list.length > 0 ? '' : agents.length > 0 ? 'No agent matches.' : unknown ? 'Only the store knows the agents, and it is out of reach.' : 'No agent is alive. An agent that sends a request or a heartbeat shows up here.');
  }

  // offer lists the classes there are.
  offer(agents) {
    const all = [...new Set(agents.map((a) => a.class))].sort().slice(0, 20);
    const key = all.join('\u0000');
    if (key === this.classes) return;
    this.classes = key;
    const chosen = this.class.value;
    this.class.replaceChildren(el('option', { value: '' }, 'all'), ...all.map((c) => {
      const o = el('option');
      o.value = c;
      put(o, clean(c, 20));
      return o;
    }));
    this.class.value = all.includes(chosen) ? chosen : '';
  }
}

const text = (a, b) => (a < b ? -1 : a > b ? 1 : 0);
const byName = (x, y) => text(x.a.name, y.a.name);
const orders = words({
  name: byName,
  class: (x, y) => text(x.a.class, y.a.class) || byName(x, y),
  state: (x, y) => (rank[x.a.state] ?? 9) - (rank[y.a.state] ?? 9) || text(x.a.class, y.a.class) || byName(x, y),
  used: (x, y) => y.sends - x.sends || byName(x, y),
  usd: (x, y) => y.usd - x.usd || byName(x, y),
});

function make() {
  const cell = (label, kind, ...children) => el('td', { 'data-label': label, ...(kind ? { class: kind } : {}) }, ...children);
  const m = { name: bdi(), where: bdi(), class: cell('class'), shape: el('span', { class: 'shape', 'aria-hidden': 'true' }), doing: el('span'), use: el('span', { class: 'nums' }), part: el('i'), of: bdi() };
  m.where.classList.add('dim', 'where');
  m.of.classList.add('dim', 'of');
  m.bar = el('span', { class: 'bar', 'aria-hidden': 'true' }, m.part);
  m.sends = cell('sends/min', 'num');
  m.tokens = cell('tokens', 'num');
  m.usd = cell('spent', 'num');
  m.share = cell('share', 'c-share', el('span', { class: 'limit-line' }, m.use, m.of), m.bar);
  m.root = el('tr', { class: 'agent' }, el('th', { scope: 'row' }, m.name, m.where), m.class,
    cell('doing now', 'c-doing', el('span', { class: 'doing' }, m.shape, m.doing)), m.sends, m.share, m.tokens, m.usd);
  return m;
}

// Colours of what an agent does: as those of resources.
const looks = words({ limited: 'queueing', held: 'paused', waiting: 'queueing' });

function update(m, { a, total, sends, waits }, now) {
  name(m.name, a.name, 80);
  const where = [a.user, a.machine].filter((s) => s && s !== '-').map((s) => clean(s, 40));
  put(m.where, where.join(' on '));
  put(m.class, clean(a.class, 20));
  const words = doing(a, sends, waits, now);
  put(m.doing, words);
  mark(m.doing, 'title', words.length > 60 ? words : null);
  mark(m.root, 'data-agent', a.state in rank ? a.state : null);
  mark(m.shape, 'data-state', looks[a.state] ?? (waits ? 'queueing' : sends > 0 ? 'flowing' : 'idle'));
  put(m.sends, count(sends));
  mark(m.sends, 'data-zero', sends ? null : '');
  const known = a.allocated != null;
  put(m.use, known ? count(a.used) + ' / ' + count(a.allocated) : a.used > 0 ? count(a.used) + ' used' : '–');
  mark(m.share, 'title', known ? 'What it used of its part of ' + clean(a.resource, 40) + ', by its class’s share among the agents that are alive. It may use what others leave.' : 'No limit is known yet that could be shared out.');
  put(m.of, a.resource ? clean(a.resource, 40) : '');
  mark(m.bar, 'hidden', known ? null : '');
  if (known) wide(m.part, Math.min(1, a.used / Math.max(1, a.allocated)));
  const tokens = (total?.input_tokens ?? 0) + (total?.output_tokens ?? 0) + (total?.tokens ?? 0);
  put(m.tokens, tokens ? count(tokens) : '–');
  mark(m.tokens, 'title', tokens ? count(total.input_tokens) + ' in, ' + count(total.output_tokens) + ' out' : null);
  spent(m.usd, total, mark, put);
}

// chain writes names that wait for each other; each is kept apart from its neighbours' direction of writing.
export function chain(names) {
  const all = names.slice(0, 8).map((n) => '\u2068' + clean(n, 40) + '\u2069');
  return all.join(' → ') + (names.length > 8 ? ' → …' : '');
}

// doing says in words what an agent does now.
function doing(a, sends, waits, now) {
  const names = a.pause_chain ?? [];
  if (waits) {
    const t = at(waits.expected_at);
    const head = 'waits ' + (t === null ? '' : t < now + 1000 ? 'a moment ' : span(t - now) + ' ') + 'for \u2068' + clean(resourceOf(waits), 30) + '\u2069';
    return head + ': ' + reason({ ...waits, expected_at: null }, now) + (names.length ? '; starts no new work: ' + chain(names) : '');
  }
  if (a.state === 'held') return 'told to start no new work: ' + (names.length ? chain(names) : 'an agent it depends on is limited');
  if (a.state === 'limited') return 'held up by a limit or a pause';
  if (a.state === 'waiting') return 'waits for its turn';
  const ends = at(a.lease_expires_at);
  const rest = (a.waits_for ?? []).length ? ', depends on ' + a.waits_for.slice(0, 5).map((n) => '\u2068' + clean(n, 40) + '\u2069').join(', ') : '';
  if (sends > 0) return 'sending' + rest;
  const lease = ends === null ? '' : a.leased === false ? ', gone in ' + span(ends - now) : ', lease for ' + span(ends - now);
  return 'idle' + lease + rest;
}
