// The list of events, newest first. Hundreds a second may come: they are shown a few times a second, and the list is short.

import { bdi, clean, el, name, put } from './dom.js';
import { clock, count, span } from './format.js';

const most = 150;
const quiet = new Set(['send', 'answer', 'usage', 'cancel']);

const titles = {
  send: 'sent', answer: 'answered', usage: 'used', cancel: 'given back', throttled: '429', pause: 'paused', resume: 'resumed', refused: 'refused',
  would_wait: 'would wait', lease_lost: 'lease lost', taken_over: 'moved to another machine', store_lost: 'store lost', store_back: 'store back', dropped: 'events lost', budget: 'budget used up',
};
const kinds = { throttled: 'bad', pause: 'bad', refused: 'warn', lease_lost: 'warn', taken_over: 'warn', store_lost: 'bad', dropped: 'warn', budget: 'warn', resume: 'good', store_back: 'good' };

export class Events {
  constructor() {
    this.list = document.getElementById('events');
    this.all = document.getElementById('all-events');
    this.kept = [];
    this.timer = 0;
    this.empty = el('li', { class: 'dim' }, 'Nothing yet. What happens from now on shows up here.');
    this.list.append(this.empty);
    this.all.addEventListener('change', () => {
      this.list.replaceChildren();
      this.kept = this.kept.filter((e) => this.wanted(e));
      for (const e of this.kept) this.list.append(item(e));
      if (this.kept.length === 0) this.list.append(this.empty);
    });
    this.fresh = [];
  }

  wanted(e) {
    return this.all.checked || !quiet.has(e.event);
  }

  add(e) {
    if (!this.wanted(e)) return;
    this.fresh.push(e);
    if (this.fresh.length > most) this.fresh.shift();
    if (!this.timer) this.timer = setTimeout(() => this.flush(), 200);
  }

  flush() {
    this.timer = 0;
    const fresh = this.fresh.reverse();
    this.fresh = [];
    this.kept = [...fresh, ...this.kept].slice(0, most);
    this.empty.remove();
    this.list.prepend(...fresh.map(item));
    while (this.list.childElementCount > most) this.list.lastElementChild.remove();
  }
}

function item(e) {
  const what = el('strong', { class: 'pill' });
  put(what, titles[e.event] ?? clean(e.event, 30));
  const node = el('li', { class: kinds[e.event] ?? 'plain' }, el('time', {}, clock(e.time)), what);
  for (const who of [e.resource, e.agent]) {
    if (!who) continue;
    const b = bdi();
    name(b, who, 60);
    node.append(b);
  }
  const more = bdi();
  name(more, details(e), 200);
  node.append(more);
  return node;
}

// details are what else is worth knowing of an event.
function details(e) {
  const said = [];
  if (e.class) said.push(e.class);
  if (e.model) said.push(clean(e.model, 40));
  if (e.retry) said.push('a retry');
  if (e.status) said.push('status ' + e.status);
  if (e.verdict && e.verdict !== 'ok') said.push(e.verdict);
  if (e.waited_ms > 0) said.push('waited ' + span(e.waited_ms));
  if (e.scope) said.push(clean(e.scope, 40));
  if (e.for_ms > 0) said.push('for ' + span(e.for_ms));
  if (e.reason) said.push(clean(e.reason, 80));
  if (e.limit) said.push(clean(e.limit, 40) + (e.size > 0 ? ' ' + count(e.used ?? 0) + ' of ' + count(e.size) : ''));
  if (e.consecutive > 1) said.push(count(e.consecutive) + ' in a row');
  if (e.count > 0) said.push(count(e.count));
  if (e.mode) said.push(clean(e.mode, 20));
  if (e.machine) said.push(clean(e.machine, 40) + (e.from_machine ? ', before on ' + clean(e.from_machine, 40) : ''));
  if (e.error) said.push(clean(e.error, 120));
  return said.join(', ');
}
