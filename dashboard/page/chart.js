// The chart of a resource: the last ten minutes, made from what the page has seen since it was opened.

import { clean } from './dom.js';
import { count } from './format.js';

const step = 5000; // milliseconds of one bar
const bars = 120;

// History is what was seen of one resource, in bars: sends and refusals since the bar before, and the level of a limit.
export class History {
  constructor() {
    this.bars = [];
    this.before = null;
  }

  // add notes a status that was read at a time.
  add(resource, limit, time) {
    const at = Math.floor(time / step);
    const b = this.before;
    this.before = { sent: resource.sent, throttled: resource.throttled };
    // Counters that went back began anew. What came while nobody looked is spread over that time: it was no peak.
    const from = Math.max(at - bars + 1, Math.min(at, (this.bars.at(-1)?.at ?? at - 1) + 1));
    const sent = b ? Math.max(0, resource.sent - b.sent) : 0;
    const refused = b ? Math.max(0, resource.throttled - b.throttled) : 0;
    for (let i = from; i <= at; i++) {
      const bar = this.bar(i);
      bar.sent += sent / (at - from + 1);
      if (i === at) bar.refused += refused;
      if (limit) {
        bar.used = Math.max(bar.used, limit.used);
        bar.limit = limit.limit;
      }
    }
    while (this.bars[0].at <= at - bars) this.bars.shift();
  }

  // bar is the newest bar, or a newer one.
  bar(at) {
    let bar = this.bars.at(-1);
    if (!bar || bar.at < at) {
      bar = { at, sent: 0, refused: 0, used: 0, limit: 0 };
      this.bars.push(bar);
    }
    return bar;
  }

  // lastMinute is what was sent in the last minute.
  lastMinute(time) {
    const from = Math.floor(time / step) - 60_000 / step;
    return this.bars.reduce((n, b) => (b.at > from ? n + b.sent : n), 0);
  }
}

// charted is the limit that sends are shown against: the first on requests that is everybody's, else the first that is.
export function charted(limits) {
  const all = (limits ?? []).filter((l) => !l.scope && l.limit > 0);
  return all.find((l) => l.unit === 'requests' && l.kind !== 'concurrency') ?? all.find((l) => l.kind !== 'concurrency') ?? all[0];
}

let ink = null;

// colors are those of the style sheet, read once for each scheme.
function colors() {
  if (!ink) {
    const css = getComputedStyle(document.documentElement);
    const of = (n) => css.getPropertyValue(n).trim();
    ink = { bar: of('--bar'), level: of('--accent'), area: of('--accent-soft'), limit: of('--dim'), refused: of('--red'), grid: of('--line') };
  }
  return ink;
}
matchMedia('(prefers-color-scheme: dark)').addEventListener('change', () => { ink = null; });

// draw draws a history: bars are sends, the line is how much of the limit is used, the dashes are the limit.
export function draw(canvas, history, time) {
  const wide = canvas.clientWidth;
  const high = canvas.clientHeight;
  if (!wide || !high) return;
  const ratio = Math.min(devicePixelRatio || 1, 3);
  if (canvas.width !== Math.round(wide * ratio)) canvas.width = Math.round(wide * ratio);
  if (canvas.height !== Math.round(high * ratio)) canvas.height = Math.round(high * ratio);
  const c = canvas.getContext('2d');
  if (!c) return;
  c.setTransform(ratio, 0, 0, ratio, 0, 0);
  c.clearRect(0, 0, wide, high);
  const now = Math.floor(time / step);
  const x = (at) => ((at - now + bars - 1) / bars) * wide;
  const w = wide / bars;
  const ink = colors();
  const foot = high - 0.5;

  c.fillStyle = ink.grid;
  for (let minute = 2; minute < 10; minute += 2) c.fillRect((minute / 10) * wide, 0, 1, high);
  c.fillRect(0, foot - 0.5, wide, 1);

  const most = Math.max(1, ...history.bars.map((b) => b.sent));
  for (const b of history.bars) {
    if (b.sent > 0) {
      const tall = Math.max(1, (b.sent / most) * high * 0.45);
      c.fillStyle = ink.bar;
      c.fillRect(x(b.at), foot - tall, Math.max(1, w - 0.75), tall);
    }
    if (b.refused > 0) {
      c.fillStyle = ink.refused;
      c.fillRect(x(b.at), 0, Math.max(2, w), 5);
    }
  }

  const top = Math.max(0, ...history.bars.map((b) => Math.max(b.limit, b.used)));
  if (top > 0) level(c, history, { x, w, foot, ink, y: (n) => foot - (n / top) * (high - 10) });
}

// level draws how much of the limit was used.
function level(c, history, s) {
  const known = history.bars.filter((b) => b.limit > 0);
  if (known.length === 0) return;
  c.lineWidth = 1;
  c.strokeStyle = s.ink.limit;
  c.setLineDash([4, 3]);
  c.beginPath();
  const now = known.at(-1);
  c.moveTo(0, s.y(now.limit));
  c.lineTo(s.x(now.at) + s.w, s.y(now.limit));
  c.stroke();
  c.setLineDash([]);
  const line = new Path2D();
  known.forEach((b, i) => {
    if (i === 0) line.moveTo(s.x(b.at), s.y(b.used));
    line.lineTo(s.x(b.at) + s.w, s.y(b.used));
  });
  const area = new Path2D(line);
  area.lineTo(s.x(now.at) + s.w, s.foot);
  area.lineTo(s.x(known[0].at), s.foot);
  c.fillStyle = s.ink.area;
  c.fill(area);
  c.lineWidth = 1.75;
  c.strokeStyle = s.ink.level;
  c.stroke(line);
}

// words says what a chart shows.
export function words(history, limit, time) {
  const said = [count(history.lastMinute(time)) + ' sent in the last minute'];
  if (limit) said.push(clean(limit.name, 30) + ': ' + count(limit.used) + ' of ' + count(limit.limit) + ' used');
  return said.join(' · ');
}
