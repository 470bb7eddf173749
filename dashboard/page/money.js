// Budgets, and what the last day cost: sends, retries, refusals, dollars.

import { bdi, clean, el, keyed, mark, name, put, wide } from './dom.js';
import { count, percent, span, until, usd } from './format.js';

const mostCallers = 50;

export function showBudgets(budgets, now) {
  mark(document.getElementById('budgets-section'), 'hidden', budgets.length > 0 ? null : '');
  const list = [...budgets].sort((a, b) => b.used_usd / (b.size_usd || 1) - a.used_usd / (a.size_usd || 1)).slice(0, 200);
  keyed(document.getElementById('budgets'), list, (b) => b.name + '\u0000' + b.who, makeBudget, (m, b) => {
    name(m.name, b.name, 60);
    name(m.who, b.who ?? '', 60);
    put(m.nums, usd(b.used_usd) + ' / ' + usd(b.size_usd));
    const part = b.size_usd > 0 ? b.used_usd / b.size_usd : 0;
    wide(m.part, Math.min(1, part));
    mark(m.root, 'data-light', part >= 1 ? 'red' : part >= 0.8 ? 'amber' : 'green');
    const said = ['a ' + clean(b.period, 10), 'then: ' + clean(b.over, 12)];
    if (b.period === 'total') said[0] = 'in all';
    if (b.resets_at) said.push('begins anew ' + until(b.resets_at, now));
    put(m.foot, said.join(' · '));
  });
}

function makeBudget() {
  const m = { name: bdi(), who: bdi(), nums: el('span', { class: 'nums' }), part: el('i'), foot: el('span', { class: 'dim foot' }) };
  m.root = el('div', { class: 'limit' }, el('span', { class: 'what' }, m.name, ' ', m.who), m.nums,
    el('div', { class: 'bar', 'aria-hidden': 'true' }, m.part), m.foot);
  return m;
}

// spentBy is what each agent spent, of all resources together.
export function spentBy(report) {
  const map = new Map();
  for (const r of report?.resources ?? []) {
    for (const c of r.callers ?? []) if (typeof c.usd === 'number') map.set(c.name, (map.get(c.name) ?? 0) + c.usd);
  }
  return map;
}

const columns = ['', 'sends', 'retries', 'on retries', '429s', 'held', 'saved', 'waited', 'spent'];

export class Report {
  constructor() {
    this.root = document.getElementById('report');
    this.totals = el('tbody');
    this.callers = el('tbody');
    this.more = el('p', { class: 'dim more' });
    const note = el('p', { class: 'dim more' }, 'Held: sends that waited because a limit was full. Sent at once they would have gone over it; saved is what sending each of them a second time would have cost.');
    this.empty = el('p', { class: 'dim' }, 'Nothing was sent.');
    const table = (body, first) => el('div', { class: 'scroll' }, el('table', { class: 'report' },
      el('thead', {}, el('tr', {}, ...columns.map((c, i) => el('th', { scope: 'col' }, i === 0 ? first : c)))), body));
    this.all = el('div', {}, table(this.totals, 'resource'), el('details', {}, el('summary', {}, 'By agent'), table(this.callers, 'agent'), this.more), note);
    this.root.append(this.empty, this.all);
  }

  show(report) {
    const resources = (report?.resources ?? []).filter((r) => r.total && sends(r.total) > 0);
    mark(this.empty, 'hidden', resources.length > 0 ? '' : null);
    mark(this.all, 'hidden', resources.length > 0 ? null : '');
    const rows = resources.map((r) => ({ ...r.total, name: r.name }));
    if (rows.length > 1) rows.push({ ...sum(rows), name: 'all', all: true });
    keyed(this.totals, rows, (r) => (r.all ? 'all' : 'of ' + r.name), make, update);
    const callers = merge(resources);
    keyed(this.callers, callers.slice(0, mostCallers), (c) => c.name, make, update);
    put(this.more, callers.length > mostCallers ? 'and ' + count(callers.length - mostCallers) + (callers.length - mostCallers === 1 ? ' more agent' : ' more agents') : '');
  }
}

const sends = (c) => (c.first_sends ?? 0) + (c.retries ?? 0);

function sum(list) {
  const total = { first_sends: 0, retries: 0, throttled: 0, waited_ms: 0, held: 0 };
  for (const c of list) {
    for (const f of ['first_sends', 'retries', 'throttled', 'waited_ms', 'held']) total[f] += c[f] ?? 0;
    for (const f of ['usd', 'retry_usd', 'held_usd']) if (typeof c[f] === 'number') total[f] = (total[f] ?? 0) + c[f];
  }
  return total;
}

// merge adds up what an agent sent to different resources. Who wasted most is first, then who spent and sent most.
function merge(resources) {
  const map = new Map();
  for (const r of resources) for (const c of r.callers ?? []) map.set(c.name, [...(map.get(c.name) ?? []), c]);
  return [...map].map(([who, list]) => ({ ...sum(list), name: who }))
    .sort((a, b) => (b.retry_usd ?? 0) - (a.retry_usd ?? 0) || b.retries - a.retries || (b.usd ?? 0) - (a.usd ?? 0) || sends(b) - sends(a));
}

function make() {
  const m = { name: bdi(), part: el('small'), cells: columns.slice(1).map(() => el('span')) };
  m.root = el('tr', {}, el('th', { scope: 'row' }, m.name), ...m.cells.map((c, i) => (i === 1 ? el('td', {}, c, ' ', m.part) : el('td', {}, c))));
  return m;
}

function update(m, c) {
  mark(m.root, 'class', c.all ? 'sum' : null);
  name(m.name, c.name, 60);
  const n = sends(c);
  put(m.part, c.retries > 0 ? '(' + percent(c.retries, n) + ')' : '');
  const text = [count(n), count(c.retries), usd(c.retry_usd), count(c.throttled), count(c.held ?? 0), usd(c.held_usd), span(c.waited_ms ?? 0), usd(c.usd)];
  m.cells.forEach((cell, i) => put(cell, text[i]));
}
