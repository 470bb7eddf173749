// All that is known of one resource: what holds it, every limit, its queue, its own chart, how to reach it.

import { bdi, clean, el, keyed, mark, name, put, wide, words } from './dom.js';
import { ago, count, percent, some, span, until, when } from './format.js';
import { Chart } from './chart.js';
import { limitName, resets, sendsData } from './charts.js';
import { makeQueue, showQueue } from './queue.js';
import { pausedNow, waiting } from './state.js';
import { copyLine } from './start.js';

const phases = words({ paused: 'Paused', probing: 'One request tests whether the pause is over', ramping: 'Few go at first after a pause' });
const mostLimits = 8; // where each agent has its own there are hundreds

export class Detail {
  constructor(context) {
    this.context = context;
    this.notes = el('ul', { class: 'gates' });
    this.limits = el('div', { class: 'limits' });
    this.more = el('p', { class: 'dim more' });
    this.facts = el('dl', { class: 'facts' });
    this.queue = makeQueue();
    this.chart = new Chart('Sends per minute, by class', 170);
    this.base = el('div');
    this.button = el('button', { type: 'button' });
    this.button.addEventListener('click', () => context.control(this.seen));
    this.root = el('div', { class: 'details' },
      el('div', { class: 'half' }, this.notes, el('h3', {}, 'Limits'), this.limits, this.more, this.facts, this.base, el('p', { class: 'actions' }, this.button)),
      el('div', { class: 'half' }, el('h3', {}, 'Sends per minute, by class'), this.chart.root, this.queue.root));
  }

  show(r, why, now) {
    const past = this.context.past;
    this.seen = r;
    keyed(this.notes, remarks(r, now), (n) => n.key, makeRemark, updateRemark);
    const list = limitsOf(r);
    keyed(this.limits, list.shown, (l) => l.name + '\u0000' + l.scope, makeLimit, (m, l) => updateLimit(m, l, now));
    const own = (r.limits ?? []).length;
    put(this.more, list.left > 0 ? 'and ' + some(list.left, 'more limit') + ' with less used' : own > 0 ? '' : r.outage ? 'The store knows them, and is out of reach.' : 'No limit is configured, and the provider has stated none yet.');
    keyed(this.facts, facts(r, now), (f) => f.what, makeFact, updateFact);
    showQueue(this.queue, r.waiting ?? {}, why, now);
    if (past.answer && this.version !== past.version) {
      this.version = past.version;
      this.chart.set(sendsData(past, r.name, r, this.context.live(), now));
    }
    const held = pausedNow(r, now) || (r.gates ?? []).some((g) => g.phase === 'paused');
    put(this.button, held ? 'Resume' : 'Pause');
    mark(this.button, 'aria-label', (held ? 'Resume ' : 'Pause ') + clean(r.name, 80));
    const base = this.context.base(r.name);
    if (base && this.address !== base) {
      this.address = base;
      this.base.replaceChildren(el('h3', {}, 'Base URL'), copyLine(base));
    }
  }
}

// remarks are what is out of the ordinary: pauses of all or a part, probes, ramps, an outage, a light or breaker that holds a class.
function remarks(r, now) {
  const list = [];
  if (r.outage) list.push({ key: 'outage', say: 'The store is out of reach', until: '', text: r.outage.why ?? '' });
  for (const g of r.gates ?? []) {
    const what = phases[g.phase] ?? clean(g.phase, 20);
    list.push({ key: g.scope + '\u0000' + g.phase, say: what, scope: g.scope, until: g.until,
      text: (g.cause ?? '') + (g.probe_at ? '; one request tries again ' + until(g.probe_at, now) : '') });
  }
  if (!(r.gates ?? []).some((g) => g.phase === 'paused' && !g.scope) && pausedNow(r, now)) list.unshift({ key: 'pause', say: 'Paused', until: r.paused_until, text: r.pause_reason ?? '' });
  for (const l of r.limits ?? []) {
    if (l.breaker && !l.scope) {
      const say = l.breaker === 'open' ? 'The breaker stops lower classes' : 'The breaker slows lower classes so that the quota lasts';
      list.push({ key: 'breaker' + l.name, say, scope: l.name, until: '', text: l.gone_at ? 'at this rate it is gone ' + until(l.gone_at, now) : '' });
    }
    if (l.light_binds && (l.light === 'amber' || l.light === 'red') && !l.scope) {
      list.push({ key: 'light' + l.name, say: 'The light is ' + l.light + (l.light === 'red' ? ': only emergencies go' : ': only the highest class goes'), scope: l.name, until: '', text: '' });
    }
  }
  if (r.silent_members > 0) {
    list.push({ key: 'silent', say: count(r.silent_members) + ' of ' + count(r.members) + (r.silent_members === 1 ? ' processes is silent: its share is withheld' : ' processes are silent: their shares are withheld'), until: '', text: '' });
  }
  if (r.past_gate > 0) list.push({ key: 'past', say: 'Past the gate in the last hour:', until: '', text: pastWords(r) + '; sluice run --intercept -- COMMAND gates them' });
  return list.slice(0, 12).map((n) => ({ ...n, left: n.until ? until(n.until, now).replace(/^in /, '') + ' left' : '' }));
}

// pastWords lists connections of commands that ignore their base URL, the most first.
function pastWords(r) {
  const hosts = Object.entries(r.past_hosts ?? {}).sort(([, a], [, b]) => b - a);
  const shown = hosts.slice(0, 3).map(([host, n], i) => (i ? count(n) : some(n, 'connection')) + ' to ' + clean(host, 60));
  return shown.join(', ') + (hosts.length > 3 ? ' and more' : '');
}

function makeRemark() {
  const m = { say: el('strong'), scope: bdi(), left: el('span', { class: 'left' }), text: bdi() };
  m.root = el('li', {}, m.say, ' ', m.scope, ' ', m.left, ' ', m.text);
  return m;
}

function updateRemark(m, n) {
  put(m.say, n.say);
  name(m.scope, n.scope ?? '', 60);
  put(m.left, n.left === 'now left' ? 'about to end' : n.left);
  name(m.text, n.text ?? '', 200);
}

function facts(r, now) {
  const outside = (r.limits ?? []).filter((l) => l.outside > 0 && !l.scope);
  return [
    { what: 'in flight', n: count(r.in_flight) },
    { what: 'waiting', n: r.outage ? '–' : count(waiting(r)) },
    { what: 'last send', n: ago(r.last_send, now) || 'none yet' },
    { what: 'last 429', n: ago(r.last_429, now) || 'none' },
    { what: '429s in 7 days', n: count(r.throttled_7d) },
    { what: 'used by others outside', n: outside.length ? count(outside[0].outside) + ' of ' + clean(outside[0].name, 30) : 'none seen' },
  ];
}

function makeFact(f) {
  const m = { n: el('span') };
  m.root = el('div', {}, el('dt', {}, f.what), el('dd', {}, m.n));
  return m;
}

function updateFact(m, f) {
  put(m.n, f.n);
}

// limitsOf picks the limits to show: everybody's and models', then the fullest of those that are somebody's.
function limitsOf(r) {
  const all = r.limits ?? [];
  const use = (l) => l.used / (l.limit || 1);
  const own = all.filter((l) => l.scope && !/^model=[^,]*$/.test(l.scope)).sort((a, b) => use(b) - use(a));
  const models = all.filter((l) => /^model=[^,]*$/.test(l.scope ?? '')).sort((a, b) => use(b) - use(a));
  const list = [...all.filter((l) => !l.scope), ...models, ...own];
  return { shown: list.slice(0, mostLimits), left: Math.max(0, list.length - mostLimits) };
}

function makeLimit() {
  const m = { label: bdi(), nums: el('span', { class: 'nums' }), used: el('i'), outside: el('i', { class: 'outside' }), foot: el('small') };
  m.bar = el('span', { class: 'bar', 'aria-hidden': 'true' }, m.used, m.outside);
  m.root = el('div', { class: 'limit' }, el('span', { class: 'limit-line' }, m.label, m.nums), m.bar, m.foot);
  return m;
}

// windowWords says how a window of a subscription stands.
function windowWords(l, now) {
  const of = l.scope ? ' of ' + clean(l.scope.replace(/^model=/, ''), 30) : '';
  const said = [span(l.window_ms).replace(' h 0 min', ' h') + ' window' + of + (l.used >= l.limit ? ' used up' : ' ' + Math.floor((100 * l.used) / l.limit) + '% used')];
  if (l.reset_at) said.push(resets(l, now));
  if (l.gone_at) said.push('at this rate empty at ' + when(l.gone_at, now));
  else if (l.used > 0 && l.used < l.limit) said.push('at this rate it lasts');
  return said.join(', ');
}

const units = words({ input_tokens: 'input tokens', output_tokens: 'output tokens' });

function updateLimit(m, l, now) {
  name(m.label, limitName(l), 80);
  const size = l.limit > 0 ? l.limit : 0;
  put(m.nums, size ? count(l.used) + ' / ' + count(size) : count(l.used) + ' used, size not known yet');
  const part = size ? Math.min(1, l.used / size) : 0;
  const outside = size ? Math.min(part, (l.outside ?? 0) / size) : 0;
  wide(m.used, part - outside);
  wide(m.outside, outside);
  const said = [units[l.unit] ?? clean(l.unit, 30)];
  if (l.kind === 'concurrency') said[0] += ' at the same time';
  else if (l.window_ms > 0) said[0] += ' in ' + span(l.window_ms).replace('1:00 min', '1 min').replace(' h 0 min', ' h');
  if (l.learned) said.push('learned from the provider');
  if (l.outside > 0) said.push(count(l.outside) + ' by others outside');
  if (l.withheld > 0) said.push(count(l.withheld) + ' withheld');
  if (l.reset_at) said.push(resets(l, now));
  if (l.light_binds && l.light && l.light !== 'off') said.push('light ' + clean(l.light, 10));
  if (l.differs_from) said.push(clean(l.differs_from, 40) + ' states another size');
  if (l.plan && size) { // a subscription's window: its millionths mean nothing to people
    put(m.nums, percent(l.used, size));
    said.splice(0, said.length, windowWords(l, now));
    if (l.light_binds && l.light && l.light !== 'green') said.push('light ' + clean(l.light, 10));
  }
  put(m.foot, said.join(' · '));
  m.foot.title = clean(l.light_reason ?? '', 200);
}
