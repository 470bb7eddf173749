// Before the first request: three ways to send one, and a line that turns into a tick when it arrives.

import { clean, el, mark, put, words } from './dom.js';

// copyLine is a line of text with a button that copies it.
export function copyLine(text) {
  const code = el('code');
  put(code, clean(text, 300));
  const button = el('button', { type: 'button', class: 'quiet copy' }, 'Copy');
  mark(button, 'aria-label', 'Copy ' + clean(text, 200));
  button.addEventListener('click', async () => {
    let done = false;
    try {
      await navigator.clipboard.writeText(text);
      done = true;
    } catch {
      const range = document.createRange(); // without a clipboard the text is selected, for whoever presses the keys
      range.selectNodeContents(code);
      getSelection().removeAllRanges();
      getSelection().addRange(range);
    }
    put(button, done ? 'Copied' : 'Selected');
    setTimeout(() => put(button, 'Copy'), 1500);
  });
  return el('div', { class: 'copy-line' }, code, button);
}

// Variables that tell clients where to send, by provider, and what stands behind the address.
const variables = words({ anthropic: ['ANTHROPIC_BASE_URL', ''], openai: ['OPENAI_BASE_URL', '/v1'], gemini: ['GOOGLE_GEMINI_BASE_URL', ''], github: ['GITHUB_API_URL', ''], groq: ['GROQ_BASE_URL', ''] });
const first = Object.keys(variables);

export class Start {
  constructor() {
    this.root = document.getElementById('start');
    this.wait = document.getElementById('start-wait');
    this.lines = document.getElementById('start-urls');
    this.done = false;
    document.getElementById('start-run').append(copyLine('sluice run -- claude'));
    document.getElementById('start-demo').append(copyLine('sluice demo'));
    document.getElementById('start-close').addEventListener('click', () => {
      this.closed = true;
      mark(this.root, 'hidden', '');
    });
  }

  // serve says what the proxy reaches.
  serve(served) {
    const known = served.filter((s) => variables[s.provider]).sort((a, b) => first.indexOf(a.provider) - first.indexOf(b.provider));
    const own = served.filter((s) => !variables[s.provider]);
    const lines = [
      ...known.slice(0, 4).map((s) => 'export ' + variables[s.provider][0] + '=' + location.origin + '/' + s.resource + variables[s.provider][1]),
      ...own.slice(0, known.length ? 0 : 3).map((s) => location.origin + '/' + s.resource),
    ];
    this.lines.replaceChildren(...(lines.length ? lines.map(copyLine) : [el('p', { class: 'dim' }, 'No resource of this configuration has an upstream. Ask for tickets with sluice acquire, or by the API.')]));
  }

  // show is told whether anything was ever sent, and what was sent last.
  show(never, latest) {
    if (never) this.begun = true;
    if (!this.begun || this.closed) return;
    mark(this.root, 'hidden', null);
    if (never || this.done) return;
    this.done = latest !== null; // who it was may be told a moment later
    mark(this.root, 'data-done', '');
    put(this.wait, 'The first request arrived' + (latest ? ': \u2068' + clean(latest.agent || 'an agent', 40) + '\u2069 to \u2068' + clean(latest.resource, 40) + '\u2069.' : '.'));
  }
}
