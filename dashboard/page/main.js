// The page: what was read last, and when it is shown.

import { now } from './api.js';
import { Agents, chain } from './agents.js';
import { Control, Token } from './dialogs.js';
import { clean, el, keyed, mark, put } from './dom.js';
import { Events } from './events.js';
import { Feed } from './feed.js';
import { count, span, usd } from './format.js';
import { Report, showBudgets, spentBy } from './money.js';
import { byResource } from './queue.js';
import { lightOf, pausedNow, Resources, waiting } from './resources.js';

const staleAfter = 3500; // milliseconds without news, of a page that asks every second

const state = { status: null, why: [], report: null, me: null, spent: new Map(), read: 0, problem: '', partial: '', events: false, locked: false };

const control = new Control(now, () => feed.refresh());
const resources = new Resources((r) => control.ask(r));
const agents = new Agents();
const report = new Report();
const events = new Events();
const byId = (id) => document.getElementById(id);

// What the feed tells.
const feed = new Feed({
  status(s) {
    state.status = { ...s, resources: s.resources ?? [], agents: s.agents ?? [], budgets: s.budgets ?? [], cycles: s.cycles ?? [] };
    state.read = Date.now();
    state.problem = '';
    state.locked = false;
    resources.note(state.status.resources, now());
    show();
  },
  why(list) {
    if (list.length === 0 && state.why.length === 0) return;
    state.why = list;
    show();
  },
  report(r) {
    state.report = r;
    state.spent = spentBy(r);
    report.show(r);
  },
  me(who) {
    state.me = who;
    mark(document.body, 'data-looks', who.control === false ? '' : null); // then there is nothing to press
    put(byId('me'), who.token ? 'Token ' + clean(who.token, 60) + (who.control === false ? ', which may look and not pause.' : '.') : '');
  },
  event(e) { events.add(e); },
  link(up) {
    state.events = up;
    showLink();
  },
  partial(e) { state.partial = e ? e.message : ''; },
  failed(e) {
    state.problem = e.name === 'TimeoutError' ? 'no answer' : e.status ? e.message : 'the daemon cannot be reached';
    showLink();
  },
  locked() {
    state.locked = true;
    showLink();
    token.ask();
  },
});
const token = new Token(() => feed.unlock());

const said = { live: 'The data is live.', stale: 'The data is stale.', wait: 'Connecting.' };

// showLink says whether what is shown is true.
function showLink() {
  const node = byId('link');
  const age = Date.now() - state.read;
  let what = 'live';
  let text = state.events ? 'live' : 'live, without events';
  if (state.locked) [what, text] = ['stale', 'a token is needed'];
  else if (state.read === 0) [what, text] = ['wait', state.problem || 'connecting'];
  else if (age > staleAfter && !document.hidden) [what, text] = ['stale', 'stale: ' + span(age) + ' old' + (state.problem ? ', ' + state.problem : '')];
  else if (state.problem) text = 'trying again: ' + state.problem;
  put(node, clean(text, 160));
  mark(node, 'data-state', what);
  put(byId('say'), said[what]); // read aloud when it changes, and not every second
  mark(document.body, 'data-stale', what === 'stale' ? '' : null);
}

function show() {
  showLink();
  const s = state.status;
  if (!s || document.hidden) return;
  const t = now();
  put(byId('store'), s.store ? 'store ' + clean(s.store, 80) : '');
  keyed(byId('glance'), glance(s, t), (g) => g.what, makeGlance, (m, g) => {
    put(m.n, g.n);
    put(m.more, g.more);
    mark(m.root, 'class', g.kind || null);
  });
  keyed(byId('notes'), notes(s), (n) => n, () => ({ root: el('p', { class: 'note warn' }) }), (m, n) => put(m.root, n));
  resources.show(s.resources, byResource(state.why), t);
  agents.show(s.agents, state.why, state.spent, t);
  showBudgets(s.budgets, t);
}

function makeGlance(g) {
  const m = { n: el('span', { class: 'n' }), more: el('small') };
  m.root = el('div', {}, el('dt', {}, g.what), el('dd', {}, m.n, ' ', m.more));
  return m;
}

// glance is the whole fleet in a few numbers.
function glance(s, t) {
  const of = (light) => s.resources.filter((r) => lightOf(r) === light).length;
  const paused = s.resources.filter((r) => pausedNow(r, t)).length;
  const limited = s.agents.filter((a) => a.state === 'limited').length;
  const held = s.agents.filter((a) => a.state === 'held').length;
  const wait = s.resources.reduce((n, r) => n + waiting(r), 0);
  const totals = (state.report?.resources ?? []).map((r) => r.total ?? {});
  const sum = (f) => totals.reduce((n, c) => n + (c[f] ?? 0), 0);
  const bad = [['red', of('red')], ['amber', of('amber')], ['unknown', of('off')], ['paused', paused]].filter(([, n]) => n > 0);
  const priced = totals.some((c) => typeof c.usd === 'number');
  return [
    { what: 'resources', n: count(s.resources.length), more: bad.length ? bad.map(([w, n]) => n + ' ' + w).join(', ') : 'all green', kind: of('red') + paused + of('off') > 0 ? 'bad' : of('amber') > 0 ? 'warn' : 'good' },
    { what: 'in flight', n: count(s.resources.reduce((n, r) => n + (r.in_flight ?? 0), 0)), more: '' },
    { what: 'waiting', n: count(wait), more: '', kind: wait > 0 ? 'warn' : '' },
    { what: 'agents', n: count(s.agents.length), more: [limited && limited + ' limited', held && held + ' held'].filter(Boolean).join(', '), kind: limited + held > 0 ? 'warn' : '' },
    { what: '429s in 7 days', n: count(s.resources.reduce((n, r) => n + (r.throttled_7d ?? 0), 0)), more: '' },
    { what: 'retries in 24 h', n: state.report ? count(sum('retries')) : '–', more: priced && sum('retries') > 0 ? 'cost ' + usd(sum('retry_usd')) : '' },
    { what: 'held in 24 h', n: state.report ? count(sum('held')) : '–', more: sum('held_usd') > 0 ? usd(sum('held_usd')) + ' saved' : '' },
    { what: 'spent in 24 h', n: priced ? usd(sum('usd')) : '–', more: '' },
  ];
}

function notes(s) {
  const list = s.cycles.slice(0, 3).map((c) => 'These agents wait for each other: ' + chain([...c, c[0]]));
  if (state.partial) list.push('Some of this could not be read: ' + clean(state.partial, 200));
  return list;
}

agents.changed(show);
resources.changed(show);
document.addEventListener('visibilitychange', show);
setInterval(show, 1000); // countdowns go on between answers
feed.start();
