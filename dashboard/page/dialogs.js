// What the page asks people: whether they mean it, and for a token.

import { clean, mark, put } from './dom.js';
import { post, setToken, token } from './api.js';
import { count } from './format.js';
import { pausedNow, waiting } from './state.js';

const id = (name) => document.getElementById(name);

// Control pauses and resumes, after a question.
export class Control {
  constructor(now, done) {
    this.box = id('control');
    this.now = now;
    this.done = done;
    this.busy = false;
    id('control-cancel').addEventListener('click', () => this.box.close());
    id('control-form').addEventListener('submit', (e) => {
      e.preventDefault();
      this.go();
    });
  }

  // ask asks about a resource, as it was when the button was pressed.
  ask(resource) {
    const title = clean(resource.name, 60);
    this.resource = resource.name;
    this.resume = pausedNow(resource, this.now()) || (resource.gates ?? []).some((g) => g.phase === 'paused');
    const isolated = '\u2068' + title + '\u2069';
    put(id('control-title'), (this.resume ? 'Resume ' : 'Pause ') + isolated + '?');
    const n = waiting(resource);
    put(id('control-text'), this.resume
      ? 'Every pause of it ends' + (n > 0 ? (n === 1 ? ', and the waiting request follows.' : ', and ' + count(n) + ' waiting requests follow, a few at first.') : '.')
      : 'All requests to it hold until the time is over. Requests under way go on.');
    mark(id('control-fields'), 'hidden', this.resume ? '' : null);
    put(id('control-go'), this.resume ? 'Resume' : 'Pause');
    put(id('control-error'), '');
    id('control-reason').value = '';
    this.box.showModal();
  }

  async go() {
    if (this.busy) return; // pressed twice
    this.busy = true;
    mark(id('control-go'), 'disabled', '');
    try {
      const path = '/v1/resources/' + encodeURIComponent(this.resource) + (this.resume ? '/resume' : '/pause');
      const reason = id('control-reason').value.trim() || 'by hand, on the page';
      await post(path, this.resume ? {} : { for_ms: Number(id('control-for').value), reason });
      this.box.close();
      this.done();
    } catch (e) {
      put(id('control-error'), clean(e.message, 300));
    } finally {
      this.busy = false;
      mark(id('control-go'), 'disabled', null);
    }
  }
}

// Token asks for a token until one is accepted.
export class Token {
  constructor(given) {
    this.box = id('token');
    this.box.addEventListener('cancel', (e) => e.preventDefault()); // there is nothing to see without one
    id('token-form').addEventListener('submit', (e) => {
      e.preventDefault();
      const value = id('token-value').value.trim();
      if (!/^[\u0021-\u007e]+$/.test(value)) {
        put(id('token-error'), 'A token has letters, digits and signs, and no blanks.');
        return;
      }
      setToken(value);
      id('token-value').value = '';
      this.box.close();
      this.show();
      given();
    });
    id('forget').addEventListener('click', () => {
      setToken('');
      location.reload();
    });
    this.show();
  }

  show() {
    mark(id('forget'), 'hidden', token() ? null : '');
  }

  ask() {
    if (this.box.open) return;
    put(id('token-error'), token() ? 'The daemon does not know that token.' : '');
    setToken('');
    this.show();
    id('control').close();
    this.box.showModal();
  }
}
