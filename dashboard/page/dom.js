// Everything that puts data into the page. Text is only ever set as text: nothing here, or anywhere else, turns data into markup.

const last = new WeakMap(); // what a node shows, so that what has not changed is not touched

// el makes an element. Attributes come from this page's own code, never from data.
export function el(tag, attributes = {}, ...children) {
  const node = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) node.setAttribute(name, value);
  node.append(...children);
  return node;
}

// put shows a text, if it is not there already.
export function put(node, text) {
  if (last.get(node) === text) return;
  last.set(node, text);
  node.textContent = text;
}

// mark sets an attribute to one of this page's own words, or removes it.
export function mark(node, name, value) {
  if (value === null || value === undefined || value === false) {
    if (node.hasAttribute(name)) node.removeAttribute(name);
  } else if (node.getAttribute(name) !== String(value)) {
    node.setAttribute(name, String(value));
  }
}

// wide sets how much of a bar is filled, from 0 to 1.
export function wide(node, part) {
  const width = (100 * part).toFixed(1) + '%';
  if (last.get(node) === width) return;
  last.set(node, width);
  node.style.width = width;
}

// Characters that show nothing, end a line, or turn the order of others around: a name that has them could pass for another.
const odd = /[\u0000-\u001f\u007f-\u009f\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180e\u200b-\u200f\u2028-\u202f\u205f-\u206f\u3164\ufeff\ufff9-\ufffb]/g;

// clean makes somebody's text fit to be shown: bounded, on one line, without tricks.
export function clean(text, most = 120) {
  const s = String(text ?? '');
  const cut = s.length > most;
  let shown = cut ? s.slice(0, most - 1) : s;
  if (cut && /[\ud800-\udbff]$/.test(shown)) shown = shown.slice(0, -1); // not half a character
  shown = shown.replace(odd, '\ufffd');
  return cut ? shown + '…' : shown;
}

// name shows somebody's text apart from what is around it, the rest of it on hovering.
export function name(node, text, most = 120) {
  const shown = clean(text, most);
  put(node, shown);
  mark(node, 'title', shown === text && shown.length < 24 ? null : clean(text, 500));
}

// bdi makes an element for name.
export function bdi(text, most) {
  const node = el('bdi', { class: 'name' });
  if (text !== undefined) name(node, text, most);
  return node;
}

// words is a table of this page's own words: nothing that is not in it is found there, such as constructor.
export function words(table) {
  return Object.assign(Object.create(null), table);
}

// keyed keeps the children of a node, those behind one of them if that is named, in step with a list. What goes on in a row (focus, an
// open list) stays as it is.
export function keyed(parent, items, keyOf, make, update, behind = null) {
  const rows = last.get(parent) ?? new Map();
  last.set(parent, rows);
  const wanted = new Map();
  for (const item of items) {
    const key = keyOf(item);
    if (!wanted.has(key)) wanted.set(key, item);
  }
  for (const [key, row] of rows) {
    if (!wanted.has(key)) {
      row.root.remove();
      rows.delete(key);
    }
  }
  let at = behind ? behind.nextElementSibling : parent.firstElementChild;
  for (const [key, item] of wanted) {
    let row = rows.get(key);
    if (!row) {
      row = make(item);
      rows.set(key, row);
    }
    update(row, item);
    if (row.root === at) at = at.nextElementSibling;
    else parent.insertBefore(row.root, at);
  }
}
