// The last requests: who, for what, how long, how it ended. Never what was asked or answered.

import { bdi, clean, el, keyed, mark, name, put, words } from './dom.js';
import { at, clock, count, guess, took, usd } from './format.js';

const most = 50;
const columns = ['time', 'agent', 'class', 'model', 'waited', 'took', 'result', 'tokens', 'spent'];

// Results in words, with the state whose colour and shape they have.
const results = words({
  running: ['no answer yet', 'idle'], done: ['ok', 'flowing'], throttled: ['refused', 'paused'], failed: ['failed', 'failing'],
  unsent: ['given back unsent', 'idle'], left: ['client left', 'idle'],
});

// Why there is no answer, in words.
const unanswered = words({
  dns: 'unknown host', refused: 'connection refused', connect: 'no connection', tls: 'TLS failed', reset: 'connection broke', timeout: 'no answer in time', other: 'no answer',
});

// resultOf says how a request ended.
function resultOf(q, word) {
  if (q.state === 'failed' && !q.status) return unanswered[q.verdict] ?? (q.verdict ? 'failed: ' + clean(q.verdict, 20) : word);
  const said = q.verdict === 'billing stop' || (q.state === 'done' && q.status >= 400) ? clean(q.verdict, 20) : word;
  return (q.status ? q.status + ' ' : '') + said;
}

export class Recent {
  constructor(again) {
    this.body = el('tbody');
    this.table = el('table', { class: 'recent', 'aria-labelledby': 'h-recent' }, el('thead', {}, el('tr', {}, ...columns.map((c) => el('th', { scope: 'col' }, c)))), this.body);
    this.box = el('div', { class: 'scroll tall', tabindex: '0', role: 'region', 'aria-label': 'Table of recent requests' }, this.table);
    this.empty = el('p', { class: 'dim more' });
    document.getElementById('recent').append(this.box, this.empty);
    this.only = document.getElementById('recent-bad');
    this.only.addEventListener('change', again);
    this.next = 0;
    this.ids = new Map();
  }

  show(recent) {
    if (!recent) return;
    const bad = this.only.checked;
    const list = recent.requests.filter((q) => !bad || q.state === 'failed' || q.state === 'throttled').slice(0, most);
    const seen = new Map(); // two requests may have begun at one moment
    keyed(this.body, list, (q) => {
      const key = q.time + '\u0000' + q.agent + '\u0000' + q.resource;
      const n = seen.get(key) ?? 0;
      seen.set(key, n + 1);
      return key + '\u0000' + n;
    }, make, update);
    mark(this.box, 'hidden', list.length ? null : '');
    put(this.empty, list.length ? '' : recent.requests.length ? 'None of the last ' + count(recent.requests.length) + ' requests was refused or failed.' : 'No request since the daemon started.');
  }
}

function make(q) {
  const num = () => el('td', { class: 'num' });
  const m = { agent: bdi(), class: el('td'), model: bdi(), of: el('small', { class: 'dim' }), waited: num(), took: num(), shape: el('span', { class: 'shape', 'aria-hidden': 'true' }), result: el('span'), tokens: num(), usd: num() };
  m.time = el('time', {}, clock(q.time));
  m.root = el('tr', {}, el('td', {}, m.time), el('th', { scope: 'row' }, m.agent), m.class, el('td', {}, m.model, ' ', m.of), m.waited, m.took,
    el('td', {}, el('span', { class: 'doing' }, m.shape, m.result)), m.tokens, m.usd);
  return m;
}

function update(m, q) {
  name(m.agent, q.agent || '–', 40);
  put(m.class, clean(q.class, 12));
  name(m.model, q.model || q.resource, 40);
  put(m.of, q.model ? clean(q.resource, 24) : '');
  put(m.waited, q.waited_ms > 0 ? took(q.waited_ms) : '–');
  put(m.took, q.took_ms > 0 || q.status ? took(q.took_ms) : '–');
  const [word, look] = results[q.state] ?? [clean(q.state, 20), 'idle'];
  mark(m.shape, 'data-state', look);
  put(m.result, resultOf(q, word) + (q.retry ? ', a retry' : ''));
  const tokens = (q.input_tokens ?? 0) + (q.output_tokens ?? 0);
  put(m.tokens, tokens ? count(q.input_tokens) + ' + ' + count(q.output_tokens) : '–');
  mark(m.tokens, 'title', tokens ? 'input + output' : null);
  put(m.usd, typeof q.usd === 'number' ? (q.guessed ? '≈ ' : '') + usd(q.usd) : '–');
  mark(m.usd, 'title', q.guessed && typeof q.usd === 'number' ? 'This is ' + guess : null);
}

// latest is the newest request, or null.
export function latest(recent) {
  const list = recent?.requests ?? [];
  return list.reduce((a, b) => (a && (at(a.time) ?? 0) >= (at(b.time) ?? 0) ? a : b), null);
}
