// The daemon's API. The token is kept for this tab alone and goes into a header, so that no other page can make use of it.

const place = 'sluice-token';
const patience = 8000; // milliseconds for one answer

// Refused is an answer that says no.
export class Refused extends Error {
  constructor(status, text, sent) {
    super(text);
    this.status = status;
    this.sent = sent; // the token that was refused
  }
}

export function token() {
  try {
    return sessionStorage.getItem(place) ?? '';
  } catch {
    return kept; // a browser that keeps nothing
  }
}

let kept = '';

export function setToken(value) {
  kept = value;
  try {
    if (value) sessionStorage.setItem(place, value);
    else sessionStorage.removeItem(place);
  } catch {
    // It lasts until the page is left.
  }
}

// skew is how far the daemon's clock is ahead of this one, in milliseconds. Times in answers are the daemon's.
let skew = 0;

export function now() {
  return Date.now() + skew;
}

function tell(response) {
  const date = Date.parse(response.headers.get('Date') ?? '');
  if (Number.isNaN(date)) return;
  const ahead = date + 500 - Date.now(); // the header has whole seconds
  skew = Math.abs(ahead) > 2000 ? ahead : 0;
}

async function refusal(response, sent) {
  let text = response.status + ' ' + response.statusText;
  try {
    const problem = await response.json();
    if (typeof problem.detail === 'string' && problem.detail) text = problem.detail;
    if (typeof problem.hint === 'string' && problem.hint) text += ' (' + problem.hint + ')';
  } catch {
    // It is not of the API; the status says enough.
  }
  return new Refused(response.status, text, sent);
}

function headers(more) {
  const t = token();
  return t ? { ...more, Authorization: 'Bearer ' + t } : more;
}

async function call(path, init) {
  const sent = token();
  const response = await fetch(path, { ...init, cache: 'no-store', redirect: 'error', signal: AbortSignal.timeout(patience) });
  tell(response);
  if (!response.ok) throw await refusal(response, sent);
  return response.status === 204 ? null : response.json();
}

export function get(path) {
  return call(path, { headers: headers({ Accept: 'application/json' }) });
}

export function post(path, body) {
  return call(path, { method: 'POST', headers: headers({ 'Content-Type': 'application/json' }), body: JSON.stringify(body) });
}

// listen reads server-sent events until the stream ends or is silent for too long. (EventSource cannot send a token.)
export async function listen(path, opened, told) {
  const stop = new AbortController();
  const silence = 45_000; // the daemon says something every 15 s
  let timer = setTimeout(() => stop.abort(), silence);
  const sent = token();
  try {
    const response = await fetch(path, { headers: headers({ Accept: 'text/event-stream' }), cache: 'no-store', redirect: 'error', signal: stop.signal });
    if (!response.ok) throw await refusal(response, sent);
    opened();
    const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
    let rest = '';
    for (;;) {
      const { value, done } = await reader.read();
      if (done) return;
      clearTimeout(timer);
      timer = setTimeout(() => stop.abort(), silence);
      const lines = (rest + value).split('\n');
      rest = lines.pop();
      if (rest.length > 1 << 20) throw new Error('an event has no end');
      for (const line of lines) {
        if (!line.startsWith('data: ')) continue;
        let event = null;
        try {
          event = JSON.parse(line.slice(6));
        } catch {
          continue; // one that cannot be read is not worth the rest
        }
        if (event && typeof event === 'object') told(event);
      }
    }
  } finally {
    clearTimeout(timer);
    stop.abort();
  }
}
