// The page: what was read last, and when it is shown.

import { rank } from './state.js';
import { now } from './api.js';
import { Agents, chain } from './agents.js';
import { Chart } from './chart.js';
import { latencyData, limitsOf, sendsData, tightest } from './charts.js';
import { Control, Token } from './dialogs.js';
import { clean, el, keyed, mark, put } from './dom.js';
import { Events } from './events.js';
import { Feed } from './feed.js';
import { showFigures } from './figures.js';
import { span } from './format.js';
import { Headline } from './headline.js';
import { Money, showBudgets } from './money.js';
import { Past, ranges } from './past.js';
import { byResource } from './queue.js';
import { latest, Recent } from './recent.js';
import { Resources } from './resources.js';
import { Start } from './start.js';

const staleAfter = 3500; // milliseconds without news, of a page that asks every second
const between = 250; // milliseconds from one drawing to the next
const place = 'sluice-range';

const state = { status: null, why: [], recent: null, me: null, read: 0, problem: '', partial: '', events: false, locked: false, served: new Map() };
const past = new Past();
const byId = (id) => document.getElementById(id);

const control = new Control(now, () => feed.refresh());
const headline = new Headline();
const events = new Events(past);
const resources = new Resources({
  past, control: (r) => control.ask(r), again: () => show(), live: () => events.loud,
  base: (name) => (state.served.has(name) ? location.origin + '/' + name : ''),
});
const agents = new Agents(() => show());
const money = new Money();
const recent = new Recent(() => show());
const start = new Start();
const sends = new Chart('Sends per minute, by class', 220);
const latency = new Chart('How long answers take', 220);
byId('sends-chart').append(sends.root);
byId('latency-chart').append(latency.root);

// What the feed tells.
const feed = new Feed({
  status(s) {
    state.status = { ...s, resources: s.resources ?? [], agents: s.agents ?? [], budgets: s.budgets ?? [], cycles: s.cycles ?? [] };
    state.read = Date.now();
    state.problem = '';
    state.locked = false;
    soon();
  },
  why(list) {
    if (list.length === 0 && state.why.length === 0) return;
    state.why = list;
    soon();
  },
  recent(r) {
    state.recent = { requests: r.requests ?? [], resources: r.resources ?? [], agents: r.agents ?? [] };
    soon();
  },
  past(answer) {
    past.set(answer);
    soon();
  },
  config(c) {
    state.served = new Map((c.served ?? []).map((s) => [s.resource, s]));
    start.serve(c.served ?? []);
    put(byId('config'), String(c.yaml ?? '').slice(0, 200_000));
    put(byId('version'), c.version && c.version !== '(devel)' ? clean(c.version, 24) : '');
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
  put(byId('link-text'), clean(text, 160));
  mark(node, 'data-state', what);
  put(byId('say'), said[what]); // read aloud when it changes, and not every second
  mark(document.body, 'data-stale', what === 'stale' ? '' : null);
  const old = what === 'stale' && state.read > 0 && !state.locked;
  mark(byId('stale'), 'hidden', old ? null : '');
  if (old) put(byId('stale'), 'No news for ' + span(age) + (state.problem ? ': ' + clean(state.problem, 160) : '') + '. Below is what was known then.');
}

let drawn = 0;
let timer = 0;

// soon draws once for all that comes within a quarter of a second.
function soon() {
  if (timer) return;
  const wait = Math.max(0, drawn + between - Date.now());
  if (wait === 0) show();
  else timer = setTimeout(show, wait);
}

function show() {
  clearTimeout(timer);
  timer = 0;
  showLink();
  const s = state.status;
  if (!s || document.hidden) return;
  drawn = Date.now();
  const began = performance.now();
  const t = now();
  mark(document.body, 'data-ready', '');
  put(byId('store'), s.store ? clean(s.store, 80) : '');
  const never = past.answer !== null && past.empty && !past.answer.kept_since && latest(state.recent) === null && s.resources.every((r) => !r.last_send);
  if (past.answer !== null) start.show(never, latest(state.recent));
  headline.show(s, (r) => resources.used(r), state.why, past, t, never);
  showFigures(s, state.why, past, state.recent, t);
  keyed(byId('notes'), notes(s), (n) => n, () => ({ root: el('p', { class: 'note' }) }), (m, n) => put(m.root, n));
  charts(s, t);
  resources.show(s.resources, byResource(state.why), state.recent, t);
  agents.show(s.agents, state.why, past, state.recent, t, s.resources.length > 0 && s.resources.every((r) => r.outage));
  money.show(past);
  showBudgets(s.budgets, t);
  recent.show(state.recent);
  events.show();
  document.body.dataset.drew = (performance.now() - began).toFixed(1); // for tests
  firstShown ||= Date.now();
  // The sections fill one after the other and would push each other down, so they are seen once all have something to show.
  const all = past.answer !== null && state.recent !== null;
  if (all || Date.now() - firstShown > patience) requestAnimationFrame(() => mark(document.body, 'data-shown', ''));
  else setTimeout(soon, patience);
}

// patience is how long the page waits for the slower answers before it shows what it has.
const patience = 1000;
let firstShown = 0;

const pick = byId('chart-resource');
let offered = '';
let shownChart = '';
let offered0 = true; // nothing was chosen yet

// first is what the charts show first: the resource in trouble, else the one that is close to its limit, because the limit can be drawn;
// else all. A resource in trouble that has sent nothing would be an empty chart.
function first(s, still) {
  if (!still) return '';
  const bad = s.resources.filter((r) => past.of(r.name)?.total?.sends > 0 && ['failing', 'paused'].includes(r.state)).sort((a, b) => rank(a) - rank(b))[0];
  if (bad) return 'of ' + bad.name;
  let best = null;
  for (const r of s.resources) {
    const t = tightest(r);
    if (t && t.part >= 0.6 && resources.used(r) && limitsOf(r).length > 0 && (!best || t.part > best.part)) best = { name: r.name, part: t.part };
  }
  return best ? 'of ' + best.name : '';
}

// charts draws those at the top: of all resources, or of one.
function charts(s, t) {
  if (!past.answer) return;
  const names = s.resources.filter((r) => resources.used(r)).map((r) => r.name).sort();
  const key = names.join('\u0000');
  if (key !== offered) {
    offered = key;
    const chosen = pick.value;
    pick.replaceChildren(el('option', { value: '' }, 'all resources'), ...names.map((n) => {
      const o = el('option');
      o.value = 'of ' + n;
      put(o, clean(n, 40));
      return o;
    }));
    pick.value = names.includes(chosen.slice(3)) ? chosen : first(s, offered0);
    offered0 = false;
    mark(byId('chart-pick'), 'hidden', names.length > 1 ? null : '');
  }
  const one = pick.value ? pick.value.slice(3) : names.length === 1 ? names[0] : null;
  const now1 = past.version + '\u0000' + one + '\u0000' + events.loud.length;
  if (now1 === shownChart) return;
  shownChart = now1;
  sends.set(sendsData(past, one, one === null ? null : s.resources.find((r) => r.name === one), events.loud, t));
  latency.set(latencyData(past, one, t));
}

function notes(s) {
  const list = s.cycles.slice(0, 3).map((c) => 'These agents wait for each other: ' + chain([...c, c[0]]));
  for (const r of s.resources) if (r.advice) list.push(clean(r.name, 40) + ': ' + clean(r.advice.text, 500));
  if (state.partial) list.push('Some of this could not be read: ' + clean(state.partial, 200));
  return list;
}

// The chosen time is kept for this tab.
function choose(range) {
  past.range = range in ranges ? range : '1h';
  for (const radio of document.querySelectorAll('input[name=range]')) radio.checked = radio.value === past.range;
  for (const node of document.querySelectorAll('.in-range')) put(node, 'in ' + past.words);
}
try {
  choose(sessionStorage.getItem(place) ?? '1h');
} catch {
  choose('1h');
}
feed.range = past.range;
byId('range').addEventListener('change', (e) => {
  choose(e.target.value);
  try {
    sessionStorage.setItem(place, past.range);
  } catch {
    // It lasts until the page is left.
  }
  feed.look(past.range);
});
pick.addEventListener('change', () => show());
document.addEventListener('visibilitychange', show);
setInterval(soon, 1000); // countdowns go on between answers
feed.start();
