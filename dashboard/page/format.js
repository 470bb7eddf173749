// How numbers and times are written.

const whole = new Intl.NumberFormat('en', { maximumFractionDigits: 0 });
const short = new Intl.NumberFormat('en', { notation: 'compact', maximumFractionDigits: 1 });

// count writes a number in a few characters; what is not known is a dash.
export function count(n) {
  if (typeof n !== 'number' || !Number.isFinite(n)) return '–';
  return Math.abs(n) < 100_000 ? whole.format(n) : short.format(n);
}

// some writes a number of things.
export function some(n, one, many) {
  return count(n) + ' ' + (n === 1 ? one : many ?? one + 's');
}

// usd writes dollars: cents, and parts of them where there is little else.
export function usd(n) {
  if (typeof n !== 'number' || !Number.isFinite(n)) return '–';
  if (n !== 0 && Math.abs(n) < 0.1) return '$' + n.toFixed(4);
  return '$' + (Math.abs(n) < 1000 ? n.toFixed(2) : count(n));
}

// guess says why dollars are a guess.
export const guess = 'a guess: the model has no price, or its usage was not stated';

// spent writes the dollars of a sum. Guessed ones have a sign, and the title says why.
export function spent(node, total, mark, put) {
  const n = total?.usd ?? 0;
  const g = total?.guessed_usd ?? 0;
  put(node, n > 0 ? (g > 0 ? '≈ ' : '') + usd(n) : '–');
  mark(node, 'title', g > 0 ? (g >= n * 0.999 ? 'This is ' : usd(g) + ' of this is ') + guess : null);
}

// percent writes a share of something.
export function percent(part, all) {
  if (!all) return '–';
  const p = (100 * part) / all;
  return (p > 0 && p < 10 ? p.toFixed(1) : p.toFixed(0)) + '%';
}

// span writes a length of time, in milliseconds.
export function span(ms) {
  const s = Math.max(0, Math.round(ms / 1000));
  if (s < 60) return s + ' s';
  if (s < 3600) return Math.floor(s / 60) + ':' + String(s % 60).padStart(2, '0') + ' min';
  if (s < 172_800) return Math.floor(s / 3600) + ' h ' + Math.floor((s % 3600) / 60) + ' min';
  return Math.floor(s / 86_400) + ' d';
}

// took writes how long an answer took: short times exactly.
export function took(ms) {
  if (typeof ms !== 'number' || !Number.isFinite(ms)) return '–';
  if (ms < 1000) return Math.round(ms) + ' ms';
  return ms < 10_000 ? (ms / 1000).toFixed(1) + ' s' : span(ms);
}

// at reads a time of the API; null if there is none.
export function at(text) {
  if (!text) return null;
  const t = Date.parse(text);
  return Number.isNaN(t) ? null : t;
}

// until writes how long it is till a time of the API; empty if there is none.
export function until(text, now) {
  const t = at(text);
  if (t === null) return '';
  return t <= now ? 'now' : 'in ' + span(t - now);
}

// ago writes how long ago a time of the API was; empty if there is none.
export function ago(text, now) {
  const t = at(text);
  return t === null ? '' : span(now - t) + ' ago';
}

// clock writes a time of day.
export function clock(text) {
  const t = at(text);
  return t === null ? '' : new Date(t).toLocaleTimeString('en-GB');
}

// when writes a time of day, and the day if it is another one.
export function when(text, now) {
  const t = at(text);
  if (t === null) return '';
  const d = new Date(t);
  return d.toDateString() === new Date(now).toDateString() ? clock(text) : day(d) + ' ' + d.toLocaleTimeString('en-GB', { hour: '2-digit', minute: '2-digit' });
}

// day writes a day of the last week.
export function day(d) {
  return d.toLocaleDateString('en-GB', { weekday: 'short', day: 'numeric' });
}
