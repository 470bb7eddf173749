// What the charts show: sends by class against the limit, and answers by how long they took.

import { clean } from './dom.js';
import { at, clock, count, some, span, took, usd, when } from './format.js';
import { number } from './chart.js';

const brief = 600_000; // milliseconds; a limit on a longer window does not bound a single minute

// limitsOf is what a limit lets through in a minute: of requests that everybody shares first, then of a model's. Limits on other units
// cannot be drawn on an axis of sends.
export function limitsOf(r) {
  const known = (r?.limits ?? []).filter((l) => l.unit === 'requests' && l.kind !== 'concurrency' && l.limit > 0 && l.window_ms > 0);
  const shared = known.filter((l) => !l.scope);
  const models = known.filter((l) => /^model=[^,]*$/.test(l.scope ?? ''));
  const pick = shared.length ? [...shared].sort((a, b) => (a.window_ms > brief) - (b.window_ms > brief) || rate(a) - rate(b)).slice(0, 1) : [...models].sort((a, b) => b.used / b.limit - a.used / a.limit).slice(0, 2);
  return pick.map((l) => {
    const long = l.window_ms > brief;
    const model = l.scope ? clean(l.scope.slice(6), 24) + ': ' : '';
    const each = l.window_ms === 60_000 ? count(l.limit) + ' requests/min' : count(l.limit) + ' requests in ' + span(l.window_ms).replace(' h 0 min', ' h').replace(':00 min', ' min') + (long ? ', ' + number(rate(l)) + '/min on average' : '');
    return { value: rate(l), text: model + each + (l.learned ? ' (learned)' : ''), soft: long, always: true };
  });
}

const rate = (l) => (l.limit * 60_000) / l.window_ms;

// classKinds gives each class a colour, by its place in the order of classes.
export function classKinds(names) {
  return new Map([...names].sort().map((c, i) => [c, 'k' + Math.min(i, 5)]));
}

// title is the time of a step.
function title(past, i, now) {
  const from = past.from + i * past.step;
  const iso = new Date(from).toISOString();
  const last = i === past.length - 1;
  const text = past.step <= 60_000 ? when(iso, now).replace(/:00$/, '') : when(iso, now).replace(/:00$/, '') + ', ' + span(past.step).replace(':00', '');
  return last ? text + ', so far' : text;
}

// sendsData is the chart of sends of one resource, or of all.
export function sendsData(past, resource, status, live, now) {
  const s = past.series(resource);
  const kinds = classKinds(s.classes.keys());
  const stacks = [...s.classes].sort(([a], [b]) => (a < b ? -1 : 1)).map(([c, values]) => ({ name: c || 'no class', kind: kinds.get(c), values }));
  const foreign = s.elsewhere.some((v) => v > 0);
  if (foreign) stacks.push({ name: 'other machines', kind: 'kx', values: s.elsewhere });
  const bands = past.pauses(resource, live);
  const marks = [];
  s.throttled.forEach((n, i) => { if (n > 0) marks.push(i); });
  const limits = status ? limitsOf(status) : [];
  const legend = stacks.map((p) => ({ kind: p.kind, text: p.name }));
  if (limits.length) legend.push({ kind: 'sw-limit', text: 'limit' });
  legend.push({ kind: 'sw-band', text: 'paused' }, { kind: 'sw-mark sw-refused', text: '429' });
  return {
    from: past.from, step: past.step, length: past.length, stacks, bands, marks, markKind: 'refused', limits, legend, write: number, least: 4,
    nothing: stacks.length === 0 ? 'no sends in ' + past.words : '',
    say(i) {
      const total = s.sends[i] + s.elsewhere[i];
      const lines = [{ text: title(past, i, now) }, { text: number(total) + ' sends/min' }];
      for (const p of stacks) if (p.values[i] > 0) lines.push({ kind: p.kind, text: p.name + ' ' + number(p.values[i]) });
      if (s.throttled[i] > 0) lines.push({ kind: 'sw-mark sw-refused', text: some(s.throttled[i], 'refusal') + ' (429)' });
      for (const b of bands) {
        if (b.to > past.from + i * past.step && b.from < past.from + (i + 1) * past.step) {
          lines.push({ kind: 'sw-band', text: 'paused' + (resource === null ? ' ' + clean(b.resource, 24) : '') + (b.scope ? ' ' + clean(b.scope, 24) : '') + ' ' + clock(new Date(b.from).toISOString()) + ' to ' + clock(new Date(b.to).toISOString()) + (b.why ? ': ' + clean(b.why, 40) : '') });
          break;
        }
      }
      if (s.usd[i] > 0) lines.push({ text: usd(s.usd[i]) + ' spent' });
      return lines;
    },
  };
}

// latencyData is the chart of how long answers took, with errors as marks.
export function latencyData(past, resource, now) {
  const s = past.series(resource);
  const marks = [];
  s.errors.forEach((n, i) => { if (n > 0) marks.push(i); });
  const any = s.p50.some((v) => v !== null);
  return {
    from: past.from, step: past.step, length: past.length, marks, bands: [], limits: [], least: any ? 0 : 1000,
    lines: [{ kind: 'c0', values: s.p95 }, { kind: 'c1', values: s.p50 }],
    legend: [{ kind: 'sw-c1', text: 'half within (p50)' }, { kind: 'sw-c0', text: '95% within (p95)' }, { kind: 'sw-mark', text: 'errors' }],
    write: (v) => (v < 1000 ? Math.round(v) + ' ms' : number(v / 1000) + ' s'),
    nothing: any || marks.length ? '' : 'no answers in ' + past.words,
    say(i) {
      const lines = [{ text: title(past, i, now) }];
      if (s.p50[i] !== null) lines.push({ kind: 'sw-c1', text: 'half within ' + took(s.p50[i]) }, { kind: 'sw-c0', text: '95% within ' + took(s.p95[i]) });
      else lines.push({ text: 'no answers' });
      if (s.errors[i] > 0) lines.push({ kind: 'sw-mark', text: some(s.errors[i], 'error') });
      return lines;
    },
  };
}

// tightest is the limit with the least room, and its resource: everybody's and models' before those of single agents.
export function tightest(r) {
  const known = (r.limits ?? []).filter((l) => l.limit > 0 && typeof l.used === 'number');
  const wide = known.filter((l) => !l.scope || /^model=[^,]*$/.test(l.scope));
  let best = null;
  for (const l of wide.length ? wide : known) {
    const part = l.used / l.limit;
    if (!best || part > best.part) best = { limit: l, part };
  }
  return best;
}

// limitName is how a limit is called: its name, the model's where it is one's, and its unit where the name does not say.
export function limitName(l) {
  const model = /^model=([^,]*)$/.exec(l.scope ?? '');
  const own = clean(l.name, 30);
  return (model ? clean(model[1], 24) + ' ' : '') + own + (model || !l.scope ? '' : ' ' + clean(l.scope, 30));
}

// resets says when a limit has room again, in few characters.
export function resets(l, now) {
  const t = at(l.reset_at);
  return t === null ? '' : t <= now ? 'resets now' : 'resets in ' + span(t - now);
}
