// The states of a resource: a word, a shape and a colour, worst first.

import { el, mark, put } from './dom.js';
import { at, clock, when } from './format.js';

export const states = ['failing', 'degraded', 'paused', 'queueing', 'flowing', 'idle'];

// stateOf is the state as one of the words, or unknown.
export function stateOf(r) {
  return states.includes(r.state) ? r.state : 'unknown';
}

export function rank(r) {
  const i = states.indexOf(r.state);
  return i < 0 ? -1 : i;
}

// waiting is how many wait, of all classes.
export function waiting(r) {
  return Object.values(r.waiting ?? {}).reduce((n, m) => n + m, 0);
}

// pausedNow reports that everybody is held.
export function pausedNow(r, now) {
  const t = at(r.paused_until);
  return t !== null && t > now;
}

// makeState makes a place for a state.
export function makeState() {
  const m = { shape: el('span', { class: 'shape', 'aria-hidden': 'true' }), word: el('span', { class: 'word' }) };
  m.root = el('span', { class: 'state' }, m.shape, m.word);
  return m;
}

export function showState(m, word) {
  mark(m.root, 'data-state', word);
  put(m.word, word);
}

// calm reports that requests pass, or that there are none.
export function calm(r) {
  return r.state === 'flowing' || r.state === 'idle';
}

// usedUp reports that a calm resource has a limit or budget with nothing left, which its reason names.
export function usedUp(r) {
  return calm(r) && r.used_up === true;
}

// ends says until when the reason of a state holds, if that is known.
export function ends(r, now) {
  const t = at(r.until);
  return t === null || t <= now ? '' : 'until ' + (t - now < 64_800_000 ? clock(r.until) : when(r.until, now));
}

// untilWords says until when a state lasts, if that is known and worth saying.
export function untilWords(r, now) {
  return calm(r) || r.state === 'queueing' && waiting(r) > 0 ? '' : ends(r, now);
}
