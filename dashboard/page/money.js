// What it costs: by model, by agent, and budgets.

import { bdi, clean, el, keyed, mark, name, put, wide } from './dom.js';
import { count, some, spent, until, usd } from './format.js';

const most = 12;

// table makes a table of what was spent by one kind of names.
function table(first, labelledby) {
  const body = el('tbody');
  const more = el('p', { class: 'dim more' });
  const root = el('table', { class: 'money', 'aria-labelledby': labelledby },
    el('thead', {}, el('tr', {}, ...[first, 'sends', 'tokens in', 'tokens out', 'spent'].map((c) => el('th', { scope: 'col' }, c)))), body);
  return { root, body, more };
}

function make() {
  const num = () => el('td', { class: 'num' });
  const m = { name: bdi(), part: el('i'), of: el('small', { class: 'dim' }), cells: [num(), num(), num(), num()] };
  m.bar = el('span', { class: 'bar thin', 'aria-hidden': 'true' }, m.part);
  m.root = el('tr', {}, el('th', { scope: 'row' }, m.name, ' ', m.of, m.bar), ...m.cells);
  return m;
}

function update(m, s, top) {
  name(m.name, s.name, 60);
  put(m.of, s.resource ? clean(s.resource, 30) : '');
  const t = s.total;
  put(m.cells[0], count(t.sends + (t.elsewhere ?? 0)));
  put(m.cells[1], t.input_tokens || !t.tokens ? count(t.input_tokens) : count(t.tokens));
  put(m.cells[2], count(t.output_tokens));
  spent(m.cells[3], t, mark, put);
  wide(m.part, top > 0 ? t.usd / top : 0);
}

export class Money {
  constructor() {
    this.models = table('model', 'h-models');
    this.agents = table('agent', 'h-spenders');
    document.getElementById('by-model').append(this.models.root, this.models.more);
    document.getElementById('by-agent').append(this.agents.root, this.agents.more);
    this.version = -1;
  }

  show(past) {
    if (!past.answer || this.version === past.version) return;
    this.version = past.version;
    this.fill(this.models, past.answer.models ?? [], 'model', past);
    this.fill(this.agents, past.answer.agents ?? [], 'agent', past);
  }

  fill(t, list, word, past) {
    const sorted = [...list].sort((a, b) => b.total.usd - a.total.usd || b.total.sends - a.total.sends);
    const top = sorted[0]?.total.usd ?? 0;
    mark(t.root, 'hidden', sorted.length ? null : '');
    keyed(t.body, sorted.slice(0, most), (s) => (s.resource ?? '') + '\u0000' + s.name, make, (m, s) => update(m, s, top));
    const left = sorted.slice(most);
    put(t.more, sorted.length === 0 ? 'No ' + word + ' was seen in ' + past.words + '.' : left.length ? 'and ' + some(left.length, 'more ' + word) + ', ' + usd(left.reduce((n, s) => n + s.total.usd, 0)) + ' together' : '');
  }
}

export function showBudgets(budgets, now) {
  mark(document.getElementById('budgets-section'), 'hidden', budgets.length > 0 ? null : '');
  const list = [...budgets].sort((a, b) => b.used_usd / (b.size_usd || 1) - a.used_usd / (a.size_usd || 1)).slice(0, 200);
  keyed(document.getElementById('budgets'), list, (b) => b.name + '\u0000' + b.who, makeBudget, (m, b) => {
    name(m.name, b.name, 60);
    name(m.who, b.who ?? '', 60);
    const guessed = b.unpriced_usd > 0;
    put(m.nums, (guessed ? '≈ ' : '') + usd(b.used_usd) + ' / ' + usd(b.size_usd));
    mark(m.nums, 'title', guessed ? usd(b.unpriced_usd) + ' of this is for models without a price' : null);
    const part = b.size_usd > 0 ? b.used_usd / b.size_usd : 0;
    wide(m.part, Math.min(1, part));
    mark(m.root, 'data-kind', part >= 1 ? 'full' : null);
    const said = [b.period === 'total' ? 'in total' : 'per ' + clean(b.period, 10), (part >= 1 ? 'used up: ' : 'when used up: ') + clean(b.over, 12)];
    if (b.slowing) said.push('slowing lower classes' + waits(b.waiting));
    if (b.resets_at) said.push('resets ' + until(b.resets_at, now));
    put(m.foot, said.join(' · '));
  });
}

// waits says how many requests a budget holds, by class.
function waits(waiting) {
  const list = Object.entries(waiting ?? {}).filter(([, n]) => n > 0).sort();
  return list.length ? ' (' + list.map(([c, n]) => n + ' ' + clean(c, 20)).join(', ') + ' waiting)' : '';
}

function makeBudget() {
  const m = { name: bdi(), who: bdi(), nums: el('span', { class: 'nums' }), part: el('i'), foot: el('small') };
  m.root = el('div', { class: 'limit' }, el('span', { class: 'limit-line' }, el('span', {}, m.name, ' ', m.who), m.nums), el('span', { class: 'bar', 'aria-hidden': 'true' }, m.part), m.foot);
  return m;
}
