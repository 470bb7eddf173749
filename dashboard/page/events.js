// The list of events, newest first: those of the history, and what happens since. Hundreds a second may come: they are shown a few times
// a second, and the list is short.

import { bdi, clean, el, mark, name, put, words } from './dom.js';
import { at, count, span, when } from './format.js';
import { states } from './state.js';

const most = 150;
const often = new Set(['upstream_error', 'throttled', 'refused']);
const quiet = new Set(['send', 'answer', 'usage', 'cancel', 'would_wait']);

const titles = words({
  send: 'sent', answer: 'answered', usage: 'used', cancel: 'given back', throttled: '429', pause: 'paused', resume: 'resumed', refused: 'refused',
  would_wait: 'would wait', lease_lost: 'lease lost', taken_over: 'moved', store_lost: 'store lost', store_back: 'store back', dropped: 'left out', budget: 'budget used up', upstream_error: 'no answer', past_gate: 'past the gate',
});
// Shape and colour of each kind: those of the state that it leads to.
const looks = words({
  throttled: 'paused', pause: 'paused', refused: 'queueing', lease_lost: 'degraded', taken_over: 'idle', store_lost: 'degraded', dropped: 'idle', budget: 'paused',
  resume: 'flowing', store_back: 'flowing', memory_lost: 'degraded', memory_back: 'flowing', upstream_lost: 'failing', upstream_back: 'flowing', failing: 'failing', recovered: 'flowing', upstream_error: 'failing', past_gate: 'degraded',
});

// modes are what a process does without its store.
const modes = words({ share: 'it holds requests for 3 s, then goes on within its share if it has one', closed: 'it holds all requests', open: 'it lets all requests go' });

// calm reports a change of state that is everyday work.
const everyday = new Set(['idle', 'flowing', 'queueing']);
const calm = (e) => e.event === 'past_gate' && !e.host || e.event === 'state' && everyday.has(e.state) && everyday.has(e.was);
const groups = words({
  refusals: (e) => e.event === 'throttled' || e.event === 'refused',
  pauses: (e) => e.event === 'pause' || e.event === 'resume',
  failures: (e) => e.event === 'upstream_error' || e.state === 'failing' || e.was === 'failing',
  states: (e) => e.event === 'state',
  store: (e) => /store/.test(e.event) || e.state === 'degraded' || e.was === 'degraded',
  budgets: (e) => e.event === 'budget' || e.reason === 'budget',
  leases: (e) => /lease|taken/.test(e.event),
});

export class Events {
  constructor(past) {
    this.past = past;
    this.list = document.getElementById('events');
    this.kind = document.getElementById('event-kind');
    this.live = []; // newest first, since the page was opened
    this.loud = []; // those of them that count
    this.timer = 0;
    this.kind.addEventListener('change', () => this.draw());
    this.version = -1;
  }

  add(e) {
    const list = quiet.has(e.event) ? this.live : this.loud;
    list.unshift(e);
    if (list.length > most) list.pop();
    if (!this.timer) this.timer = setTimeout(() => this.draw(), 250);
  }

  show() {
    if (this.version !== this.past.version) this.draw();
  }

  draw() {
    clearTimeout(this.timer);
    this.timer = 0;
    this.version = this.past.version;
    if (document.hidden) return;
    const now = Date.now();
    const key = (e) => e.time + '\u0000' + e.event + '\u0000' + (e.resource ?? '') + '\u0000' + (e.agent ?? '') + '\u0000' + (e.ticket ?? '');
    const kind = this.kind.value;
    const byTime = (a, b) => (at(b.time) ?? 0) - (at(a.time) ?? 0);
    const seen = new Set();
    const all = [...this.loud, ...(kind === 'all' ? this.live : []), ...(this.past.answer?.events ?? [])].sort(byTime)
      .filter((e) => (groups[kind] ? groups[kind](e) : kind === 'all' || !calm(e)) && !seen.has(key(e)) && seen.add(key(e))).slice(0, 4 * most);
    const rows = [];
    for (const e of all) {
      if (rows.length >= most) break; // what happens again and again takes one line
      const before = rows.at(-1);
      if (before && often.has(e.event) && before.e.event === e.event && before.e.resource === e.resource) before.more++;
      else rows.push({ e, more: 0 });
    }
    const had = this.items ?? new Map();
    this.items = new Map();
    const nodes = rows.map(({ e, more }) => {
      const node = had.get(key(e)) ?? item(e, now);
      this.items.set(key(e), node);
      put(node.more, more > 0 ? 'and ' + count(more) + ' before it' : '');
      return node.root;
    });
    if (nodes.length === 0) nodes.push(el('li', { class: 'dim none' }, 'Nothing happened in ' + this.past.words + '.'));
    if (this.list.childElementCount === nodes.length && nodes.every((n, i) => this.list.children[i] === n)) return;
    this.list.replaceChildren(...nodes);
  }
}

function item(e, now) {
  const what = el('strong');
  put(what, e.event === 'state' ? clean(e.state, 20) : titles[e.event] ?? clean(String(e.event).replaceAll('_', ' '), 30));
  const shape = el('span', { class: 'shape', 'aria-hidden': 'true' });
  mark(shape, 'data-state', e.event === 'state' && states.includes(e.state) ? e.state : looks[e.event] ?? 'idle');
  const node = el('li', {}, el('time', {}, when(e.time, now)), el('span', { class: 'what' }, shape, what));
  const rest = el('span', { class: 'rest' });
  for (const who of [e.resource, e.agent]) {
    if (!who) continue;
    const b = bdi();
    name(b, who, 60);
    rest.append(b, ' ');
  }
  const more = bdi();
  more.classList.remove('name');
  name(more, details(e), 240);
  const alike = el('small', { class: 'dim' });
  rest.append(more, ' ', alike);
  node.append(rest);
  return { root: node, more: alike };
}

// details are what else is worth knowing of an event.
function details(e) {
  const said = [];
  if (e.event === 'dropped') return count(e.count ?? 0) + ' more events' + (e.reason ? ' of the kind ' + clean(e.reason, 20) : '') + ' were not kept';
  if (e.event === 'past_gate') return e.host ? (e.count === 1 ? '1 connection to ' : count(e.count ?? 0) + ' connections to ') + clean(e.host, 60) : 'calls of a command are watched';
  if (e.event === 'state') return [e.reason && clean(e.reason, 200), 'was ' + clean(e.was || 'not known', 20) + (e.for_ms > 0 ? ' for ' + span(e.for_ms) : '')].filter(Boolean).join('; ');
  if (e.class) said.push(clean(e.class, 20));
  if (e.model) said.push(clean(e.model, 40));
  if (e.retry) said.push('a retry');
  if (e.status) said.push('status ' + e.status);
  if (e.verdict && e.verdict !== 'ok' && e.verdict !== 'throttled') said.push(clean(e.verdict, 20));
  if (e.waited_ms > 0) said.push('waited ' + span(e.waited_ms));
  if (e.scope) said.push(clean(e.scope, 40));
  if (e.for_ms > 0) said.push('for ' + span(e.for_ms));
  if (e.reason) said.push(clean(e.reason, 120));
  if (e.limit) said.push(clean(e.limit, 40) + (e.size > 0 && e.event !== 'budget' ? ' ' + count(e.used ?? 0) + ' of ' + count(e.size) : ''));
  if (e.consecutive > 1) said.push(count(e.consecutive) + ' in a row');
  if (e.count > 0) said.push(count(e.count));
  if (e.mode) said.push(modes[e.mode] ?? clean(e.mode, 20));
  if (e.machine) said.push(clean(e.machine, 40) + (e.from_machine ? ', before on ' + clean(e.from_machine, 40) : ''));
  if (e.error) said.push(clean(e.error, 160));
  return said.join(', ');
}
