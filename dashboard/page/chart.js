// A chart: stacked bars or lines over time, with axes, a legend, limits, shaded pauses and marks. What is under the pointer, or chosen
// with the arrow keys, is told in words.

import { clean, el, mark, put } from './dom.js';
import { count, day } from './format.js';

const space = 'http://www.w3.org/2000/svg';
const edge = { left: 46, right: 10, top: 14, bottom: 22 };

function svg(tag, attributes = {}) {
  const node = document.createElementNS(space, tag);
  for (const [name, value] of Object.entries(attributes)) node.setAttribute(name, value);
  return node;
}

const r1 = (n) => Math.round(n * 10) / 10;

// nice are the values that an axis shows, from 0 to at least the top.
export function nice(top, most = 4) {
  if (!(top > 0)) return [0, 1];
  const rough = top / most;
  const power = 10 ** Math.floor(Math.log10(rough));
  const step = [1, 2, 2.5, 5, 10].map((f) => f * power).find((f) => f >= rough * 0.999);
  const list = [];
  for (let v = 0; v < top + step * 0.999; v += step) list.push(Math.round(v * 1e6) / 1e6);
  return list;
}

// hours are the times that the other axis shows.
function times(from, to, wide) {
  const minute = 60_000;
  const room = Math.max(2, Math.floor(wide / 76));
  const step = [1, 2, 5, 10, 15, 30, 60, 120, 180, 240, 360, 720, 1440].map((m) => m * minute).find((s) => (to - from) / s <= room) ?? 1440 * minute;
  const zone = new Date(from).getTimezoneOffset() * minute;
  const list = [];
  for (let t = Math.ceil((from - zone) / step) * step + zone; t <= to; t += step) list.push(t);
  return { list, days: step >= 720 * minute || to - from > 2 * 86_400_000 };
}

export function timeText(t, days) {
  const d = new Date(t);
  return days && d.getHours() === 0 && d.getMinutes() === 0 ? day(d) : d.toLocaleTimeString('en-GB', { hour: '2-digit', minute: '2-digit' });
}

export class Chart {
  constructor(label, high = 190) {
    this.high = high;
    this.label = label;
    this.data = null;
    this.chosen = -1;
    this.svg = svg('svg', { 'aria-hidden': 'true', focusable: 'false' });
    this.tip = el('div', { class: 'tip', hidden: '' });
    this.plot = el('div', { class: 'plot', role: 'slider', tabindex: '0', 'aria-label': label, 'aria-orientation': 'horizontal', 'aria-valuemin': '0', 'aria-valuemax': '0', 'aria-valuenow': '0', 'aria-valuetext': 'no data yet' }, this.svg, this.tip);
    this.plot.style.height = high + 'px';
    this.legend = el('ul', { class: 'legend' });
    this.root = el('figure', { class: 'chart' }, this.legend, this.plot);
    this.wide = 0;
    new ResizeObserver(() => {
      const wide = Math.round(this.plot.clientWidth);
      if (wide !== this.wide && wide > 0) {
        this.wide = wide;
        this.render();
      }
    }).observe(this.plot);
    this.plot.addEventListener('pointermove', (e) => this.choose(this.under(e)));
    this.plot.addEventListener('pointerdown', (e) => this.choose(this.under(e)));
    this.plot.addEventListener('pointerleave', () => { if (document.activeElement !== this.plot) this.choose(-1); });
    this.plot.addEventListener('blur', () => this.choose(-1));
    this.plot.addEventListener('keydown', (e) => this.key(e));
  }

  key(e) {
    if (!this.data) return;
    const last = this.data.length - 1;
    const at = this.chosen < 0 ? last : this.chosen;
    const to = { ArrowLeft: at - 1, ArrowDown: at - 1, ArrowRight: at + 1, ArrowUp: at + 1, Home: 0, End: last, PageDown: at - 10, PageUp: at + 10 }[e.key];
    if (e.key === 'Escape') return this.choose(-1);
    if (to === undefined) return undefined;
    e.preventDefault();
    return this.choose(Math.min(last, Math.max(0, this.chosen < 0 ? last : to)));
  }

  under(e) {
    if (!this.data || !this.scale) return -1;
    const x = e.clientX - this.plot.getBoundingClientRect().left;
    const i = Math.floor(this.scale.index(x));
    return i < 0 || i >= this.data.length ? -1 : i;
  }

  // set shows other data: { from, step, length, stacks, lines, marks, bands, limits, unit, write, say, legend }.
  set(data) {
    this.data = data;
    if (this.chosen >= data.length) this.chosen = -1;
    this.render();
  }

  render() {
    const d = this.data;
    if (!d || this.wide < 80) return;
    const inner = this.wide - edge.left - edge.right;
    const tall = this.high - edge.top - edge.bottom;
    const sums = new Float64Array(d.length);
    for (const s of d.stacks ?? []) for (let i = 0; i < d.length; i++) sums[i] += s.values[i];
    let top = Math.max(0, ...sums);
    for (const l of d.lines ?? []) for (const v of l.values) if (v !== null && v > top) top = v;
    const limits = (d.limits ?? []).filter((l) => l.value > 0 && (l.value <= top * 8 || l.always || top === 0)); // one far above would flatten the rest
    for (const l of limits) top = Math.max(top, l.value * 1.08);
    const values = nice(Math.max(top, d.least ?? 0));
    top = values.at(-1);
    const y = (v) => edge.top + tall - (v / top) * tall;
    const x = (i) => edge.left + (i / d.length) * inner;
    const xt = (t) => edge.left + Math.min(1, Math.max(0, (t - d.from) / (d.length * d.step))) * inner;
    this.scale = { x, y, index: (px) => ((px - edge.left) / inner) * d.length };
    const parts = [];
    for (const b of d.bands ?? []) {
      const w = Math.max(2, xt(b.to) - xt(b.from));
      parts.push(svg('rect', { class: 'band', x: r1(xt(b.from)), y: edge.top, width: r1(w), height: tall }));
    }
    for (const v of values) {
      parts.push(svg('line', { class: v === 0 ? 'axis' : 'grid', x1: edge.left, x2: this.wide - edge.right, y1: r1(y(v)), y2: r1(y(v)) }));
      parts.push(this.text(d.write(v), edge.left - 6, y(v) + 4, 'end'));
    }
    const { list, days } = times(d.from, d.from + d.length * d.step, inner);
    for (const t of list) {
      const px = xt(t);
      if (px < edge.left + 8 || px > this.wide - edge.right - 12) continue;
      parts.push(svg('line', { class: 'tick', x1: r1(px), x2: r1(px), y1: edge.top + tall, y2: edge.top + tall + 4 }));
      parts.push(this.text(timeText(t, days), px, this.high - 5, 'middle'));
    }
    parts.push(...this.bars(d, x, y), ...this.curves(d, x, y));
    for (const l of limits) {
      parts.push(svg('line', { class: l.soft ? 'limit soft' : 'limit', x1: edge.left, x2: this.wide - edge.right, y1: r1(y(l.value)), y2: r1(y(l.value)) }));
      parts.push(this.text(l.text, this.wide - edge.right - 2, y(l.value) - 4, 'end', 'limit-text'));
    }
    const marks = (d.marks ?? []).map((i) => { const c = x(i + 0.5); return `M${r1(c)} ${edge.top - 10}l5 9h-10z`; }).join('');
    if (marks) parts.push(svg('path', { class: d.markKind ? 'mark ' + d.markKind : 'mark', d: marks }));
    if (d.nothing) parts.push(this.text(d.nothing, edge.left + inner / 2, edge.top + tall / 2, 'middle', 'nothing'));
    this.cursor = svg('line', { class: 'cursor', y1: edge.top, y2: edge.top + tall, x1: 0, x2: 0, visibility: 'hidden' });
    parts.push(this.cursor);
    this.svg.setAttribute('viewBox', `0 0 ${this.wide} ${this.high}`);
    this.svg.setAttribute('width', this.wide);
    this.svg.setAttribute('height', this.high);
    this.svg.replaceChildren(...parts);
    this.showLegend(d);
    mark(this.plot, 'aria-valuemax', d.length - 1);
    this.choose(this.chosen);
  }

  text(words, x, y, anchor, kind = 'label') {
    const t = svg('text', { class: kind, x: r1(x), y: r1(y), 'text-anchor': anchor });
    t.textContent = clean(words, 60);
    return t;
  }

  // bars draws each part of the stacks as one path.
  bars(d, x, y) {
    const base = new Float64Array(d.length);
    const gap = (x(1) - x(0)) > 5 ? 1 : 0;
    return (d.stacks ?? []).map((s) => {
      let path = '';
      for (let i = 0; i < d.length; i++) {
        const v = s.values[i];
        if (!(v > 0)) continue;
        const y0 = y(base[i]);
        base[i] += v;
        const y1 = Math.min(y(base[i]), y0 - 0.7);
        path += `M${r1(x(i))} ${r1(y0)}V${r1(y1)}H${r1(x(i + 1) - gap)}V${r1(y0)}z`;
      }
      return svg('path', { class: 'part ' + s.kind, d: path });
    });
  }

  // curves draws lines; where nothing is known they have gaps.
  curves(d, x, y) {
    return (d.lines ?? []).map((l) => {
      let path = '';
      let pen = false;
      l.values.forEach((v, i) => {
        if (v === null) {
          pen = false;
          return;
        }
        const next = l.values[i + 1] ?? null;
        path += (pen ? 'L' : 'M') + r1(x(i + 0.5)) + ' ' + r1(y(v));
        if (!pen && next === null) path += 'h0.1'; // a point by itself
        pen = true;
      });
      return svg('path', { class: 'curve ' + l.kind, d: path });
    });
  }

  showLegend(d) {
    const key = d.legend.map((l) => l.kind + l.text).join('\u0000');
    if (this.legendKey === key) return;
    this.legendKey = key;
    this.legend.replaceChildren(...d.legend.map((l) => {
      const words = el('span');
      put(words, clean(l.text, 60));
      return el('li', {}, el('i', { class: 'swatch ' + l.kind, 'aria-hidden': 'true' }), words);
    }));
  }

  // choose tells of one step; -1 of none.
  choose(i) {
    this.chosen = i;
    if (!this.data || !this.cursor) return;
    if (i < 0) {
      mark(this.tip, 'hidden', '');
      mark(this.cursor, 'visibility', 'hidden');
      const last = this.data.length - 1;
      mark(this.plot, 'aria-valuenow', last);
      mark(this.plot, 'aria-valuetext', this.data.say(last).map((l) => l.text).join(', '));
      return;
    }
    const lines = this.data.say(i);
    this.tip.replaceChildren(...lines.map((l, n) => {
      const p = el(n === 0 ? 'strong' : 'span', {}, ...(l.kind ? [el('i', { class: 'swatch ' + l.kind, 'aria-hidden': 'true' })] : []));
      p.append(clean(l.text, 90));
      return p;
    }));
    mark(this.tip, 'hidden', null);
    const px = this.scale.x(i + 0.5);
    mark(this.cursor, 'visibility', null);
    mark(this.cursor, 'x1', r1(px));
    mark(this.cursor, 'x2', r1(px));
    const w = this.tip.offsetWidth;
    this.tip.style.left = Math.max(0, Math.min(this.wide - w, px < this.wide / 2 ? px + 12 : px - w - 12)) + 'px';
    mark(this.plot, 'aria-valuenow', i);
    mark(this.plot, 'aria-valuetext', lines.map((l) => l.text).join(', '));
  }
}

// spark is a line without axes, for a cell of a table.
export function makeSpark() {
  const path = svg('path', { class: 'spark' });
  const node = svg('svg', { class: 'sparkline', viewBox: '0 0 64 18', 'aria-hidden': 'true', focusable: 'false' });
  node.append(path);
  return { root: node, path };
}

export function showSpark(m, values) {
  if (!values) return;
  const n = values.length;
  const top = Math.max(...values, 1e-9);
  let d = '';
  const most = Math.min(n, 64);
  for (let i = 0; i < most; i++) { // the highest of what falls on one point
    let v = 0;
    for (let k = Math.floor((i * n) / most); k < Math.floor(((i + 1) * n) / most); k++) v = Math.max(v, values[k]);
    d += (i ? 'L' : 'M') + r1((i / Math.max(1, most - 1)) * 62 + 1) + ' ' + r1(16.5 - (v / top) * 15);
  }
  mark(m.path, 'd', d);
}

export const number = (v) => (v !== 0 && Math.abs(v) < 10 && v % 1 !== 0 ? v.toFixed(1) : count(v));
