// The row of figures that matter.

import { clean, el, keyed, mark, put } from './dom.js';
import { ago, at, count, guess, percent, span, took, usd } from './format.js';
import { makeSpark, showSpark } from './chart.js';
import { limitName, resets, tightest } from './charts.js';
import { classWaits } from './headline.js';
import { waiting } from './state.js';

export function showFigures(s, why, past, recent, now) {
  keyed(document.getElementById('figures'), figures(s, why, past, recent, now), (f) => f.what, make, (m, f) => {
    put(m.n, f.n);
    put(m.more, f.more);
    mark(m.root, 'title', f.title ?? null);
    mark(m.root, 'data-kind', f.kind || null);
    mark(m.spark.root, 'hidden', f.spark ? null : '');
    if (f.spark && m.version !== past.version) {
      m.version = past.version;
      showSpark(m.spark, f.spark);
    }
  });
}

function make(f) {
  const m = { n: el('span', { class: 'n' }), more: el('small'), spark: makeSpark() };
  m.root = el('div', {}, el('dt', {}, f.what), el('dd', {}, el('span', { class: 'line' }, m.n, m.spark.root), m.more));
  return m;
}

function figures(s, why, past, recent, now) {
  const known = past.answer !== null;
  const wait = s.resources.reduce((n, r) => n + waiting(r), 0);
  const sends = recent ? recent.resources.reduce((n, r) => n + r.sends, 0) : null;
  const away = s.resources.length > 0 && s.resources.every((r) => r.outage); // then it is not known, which is not 0
  const list = classWaits(why, now).map((w) => clean(w.class, 12) + (w.last === null ? ' not known' : ' ' + span(w.last)));
  let tight = null;
  for (const r of s.resources) {
    const t = tightest(r);
    if (t && (!tight || t.part > tight.part)) tight = { ...t, r };
  }
  const refused = past.total('throttled');
  const errors = past.total('errors');
  const dollars = past.total('usd');
  const guessed = past.total('guessed_usd');
  const last = s.resources.map((r) => at(r.last_429)).filter((t) => t !== null).sort((a, b) => b - a)[0];
  const elsewhere = past.total('elsewhere');
  const latency = mean(past);
  return [
    { what: 'sends, last minute', n: count(sends), more: elsewhere > 0 ? 'and ' + count(elsewhere) + ' by other machines in ' + past.words : known ? count(past.total('sends')) + ' in ' + past.words : '', spark: known ? past.series(null).sends : null },
    { what: 'waiting now', n: away ? '–' : count(wait), more: away ? 'not known: the store is out of reach' : wait > 0 ? (list.length ? 'up to ' + list.join(' · ') : byClass(s)) : 'no request waits', kind: wait > 0 ? 'queueing' : '' },
    { what: 'tightest limit', n: tight ? percent(tight.limit.used, tight.limit.limit) : '–', more: tight ? [clean(tight.r.name, 24) + ' ' + limitName(tight.limit), resets(tight.limit, now)].filter(Boolean).join(' · ') : away ? 'not known: the store is out of reach' : 'no limit is known yet' },
    { what: 'refused by providers', n: known ? count(refused) : '–', more: 'in ' + past.words + (last ? ', last ' + ago(new Date(last).toISOString(), now) : ''), title: 'Answers with 429 and the like', kind: refused > 0 ? 'paused' : '' },
    { what: 'errors', n: known ? count(errors) : '–', more: 'in ' + past.words + (latency ? ' · half within ' + took(latency) : ''), title: 'Other error answers, and requests without an answer, in ' + past.words, kind: errors > 0 ? 'failing' : '' },
    { what: 'spent', n: known ? (guessed > 0 ? '≈ ' : '') + usd(dollars) : '–', more: guessed > 0 ? usd(guessed) + ' of it guessed' : 'in ' + past.words, title: guessed > 0 ? '≈ is ' + guess : null },
  ];
}

// byClass is how many wait of each class, where it is not known for how long.
function byClass(s) {
  const n = new Map();
  for (const r of s.resources) for (const [c, k] of Object.entries(r.waiting ?? {})) n.set(c, (n.get(c) ?? 0) + k);
  return [...n].filter(([, k]) => k > 0).sort().map(([c, k]) => clean(c, 12) + ' ' + count(k)).join(' · ');
}

// mean is about how long half of all answers stayed below, weighed by their number.
function mean(past) {
  let n = 0;
  let sum = 0;
  for (const s of past.answer?.resources ?? []) {
    if (!s.total?.latency_p50_ms) continue;
    n += s.total.answers;
    sum += s.total.latency_p50_ms * s.total.answers;
  }
  return n ? sum / n : 0;
}
