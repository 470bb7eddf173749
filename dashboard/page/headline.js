// The headline: what a person should know first, in sentences, worst first.

import { clean, el, keyed, mark, put } from './dom.js';
import { at, count, percent, some, span } from './format.js';
import { calm, ends, rank, stateOf, untilWords, usedUp, waiting } from './state.js';
import { limitName, tightest } from './charts.js';

const most = 4; // sentences about trouble

const apart = (text, n = 40) => '\u2068' + clean(text, n) + '\u2069';

// list writes names: a, b and 3 others.
function list(names) {
  const shown = names.slice(0, 3).map((n) => apart(n));
  if (names.length === 1) return shown[0];
  if (names.length <= 3) return shown.slice(0, -1).join(', ') + ' and ' + shown.at(-1);
  return shown.join(', ') + ' and ' + some(names.length - 3, 'other');
}

function stop(text) {
  return /[.!?]$/.test(text) ? text : text + '.';
}

// trouble are sentences about resources that do not simply flow, those with one reason together.
function trouble(resources, now) {
  const groups = new Map();
  const crowd = resources.filter((r) => stateOf(r) === 'queueing').length > 2; // then they are told together
  for (const r of resources) {
    const s = stateOf(r);
    if (calm(r)) continue;
    const key = s + (s === 'queueing' && crowd ? '' : '\u0000' + (r.reason ?? '') + '\u0000' + (s === 'paused' ? r.until : ''));
    if (!groups.has(key)) groups.set(key, { state: s, rank: rank(r), names: [], waits: 0, first: r });
    const g = groups.get(key);
    g.names.push(r.name);
    g.waits += waiting(r);
  }
  return [...groups.values()].sort((a, b) => a.rank - b.rank || b.waits - a.waits).map((g) => {
    const all = g.names.length > 1 && g.names.length === resources.length;
    const who = (all ? 'All ' + count(g.names.length) + ' resources' : list(g.names)) + (g.names.length === 1 ? ' is ' : ' are ');
    const end = untilWords(g.first, now);
    const several = g.state === 'queueing' && g.names.length > 1;
    const reason = several ? (g.waits > 0 ? some(g.waits, 'request waits', 'requests wait') : 'limits are used up') + '; the table says for what' : clean(g.first.reason ?? '', 240);
    let text = who + (g.state === 'unknown' ? 'in an unknown state' : g.state) + (end ? ' ' + end : '') + (reason ? ': ' + reason : '');
    text = stop(text);
    if (g.waits > 0 && g.state !== 'queueing') text += ' ' + some(g.waits, 'request holds', 'requests hold') + ', none lost.';
    return { key: g.state + g.names[0], state: g.state, text };
  });
}

// sentences are the whole headline.
export function sentences(s, used, now, never) {
  const said = trouble(s.resources, now);
  if (never && said.length === 0) return [{ key: 'never', state: 'idle', text: 'No request yet. ' + (s.resources.length ? some(s.resources.length, 'resource is', 'resources are') + ' ready.' : '') }];
  const extra = said.length - most;
  const lines = said.slice(0, most);
  if (extra > 0) lines.push({ key: 'more', state: said[most].state, text: some(extra, 'more resource needs', 'more resources need') + ' a look: the table below has them.' });
  const of = (state) => s.resources.filter((r) => stateOf(r) === state);
  for (const r of s.resources.filter(usedUp).slice(0, most)) {
    lines.push({ key: 'out' + r.name, state: r.state, text: stop(apart(r.name) + ' is ' + r.state + ': ' + [clean(r.reason ?? '', 240), ends(r, now)].filter(Boolean).join(', ')) });
  }
  const flowing = of('flowing').filter((r) => !usedUp(r)).map((r) => r.name);
  const idle = of('idle').filter((r) => used(r) && !usedUp(r)).length;
  if (flowing.length > 0) {
    lines.push({ key: 'flow', state: 'flowing', text: (lines.length && flowing.length > 1 ? 'The other ' + count(flowing.length) + ' resources flow' : list(flowing) + (flowing.length === 1 ? ' flows' : ' flow')) + ': requests pass without waiting.' });
  } else if (lines.length === 0) {
    lines.push({ key: 'idle', state: 'idle', text: 'Idle: no request was sent in the last minute.' });
  } else if (idle > 0) {
    lines.push({ key: 'idle', state: 'idle', text: some(idle, 'other resource is', 'other resources are') + ' idle.' });
  }
  return lines;
}

// facts are the line below: use, refusals, waits.
export function facts(s, why, past, now) {
  const list = [];
  const unknown = s.resources.some((r) => r.state === 'degraded' || stateOf(r) === 'unknown');
  let best = null;
  for (const r of s.resources) {
    const t = tightest(r);
    if (t && (!best || t.part > best.part)) best = { ...t, r };
  }
  if (best && best.part >= 0.005) list.push(percent(best.limit.used, best.limit.limit) + ' of ' + apart(best.r.name) + ' ' + limitName(best.limit) + ' used');
  if (past.answer) {
    const refused = past.total('throttled');
    const errors = past.total('errors');
    if (refused === 0 && errors === 0 && !past.empty) list.push('no refusals and no errors in ' + past.words);
    else if (!past.empty) list.push((refused === 0 ? 'no refusals' : some(refused, 'refusal') + ' (429)') + ', ' + (errors === 0 ? 'no errors' : some(errors, 'error')) + ' in ' + past.words);
  }
  const waits = classWaits(why, now);
  for (const w of waits.slice(0, 3)) list.push(clean(w.class, 20) + (w.last === null ? ' waits, its turn is not known' : ' waits up to ' + span(w.last)));
  if (waits.length === 0 && !unknown && s.resources.every((r) => waiting(r) === 0) && !past.empty) list.push('no request waits');
  return list.join(' · ');
}

// classWaits is how long each class still waits: the last of those that are listed; null: it is not known.
export function classWaits(why, now) {
  const map = new Map();
  for (const w of why) {
    const t = at(w.expected_at);
    const had = map.get(w.class);
    const left = t === null ? null : Math.max(0, t - now);
    map.set(w.class, had === undefined ? { n: 1, last: left } : { n: had.n + 1, last: left === null || had.last === null ? null : Math.max(had.last, left) });
  }
  return [...map].map(([c, v]) => ({ class: c, ...v })).sort((a, b) => (a.class < b.class ? -1 : 1));
}

export class Headline {
  constructor() {
    this.lines = document.getElementById('headline');
    this.facts = document.getElementById('facts');
    this.say = document.getElementById('say-state');
    this.said = '';
  }

  show(s, used, why, past, now, never) {
    const lines = sentences(s, used, now, never);
    keyed(this.lines, lines, (l) => l.key, () => {
      const m = { shape: el('span', { class: 'shape', 'aria-hidden': 'true' }), text: el('span') };
      m.root = el('p', {}, m.shape, m.text);
      return m;
    }, (m, l) => {
      mark(m.root, 'data-state', l.state);
      put(m.text, l.text);
    });
    put(this.facts, facts(s, why, past, now));
    // Read aloud when a state changes, and not when a number does.
    const key = lines.map((l) => l.key + l.state).join();
    if (key !== this.said) {
      this.said = key;
      put(this.say, lines.map((l) => l.text).join(' '));
    }
    const worst = lines[0]?.state;
    const title = worst === 'flowing' || worst === 'idle' ? 'Sluice' : worst + ' · Sluice';
    if (document.title !== title) document.title = title;
  }
}
