// Headers that say nothing about quotas and may be secrets, or hold some.
"use strict";

const secret = new Set([
  "set-cookie", "set-cookie2", "cookie", "authorization", "proxy-authorization", "www-authenticate", "x-api-key",
  "referer", "baggage", "location",
]);
const longest = 4096;
const most = 200;

/** Headers as the API takes them: one string for each name, and no secrets. They may be fetch's, node's, or an object. */
function plainHeaders(headers) {
  const out = {};
  if (headers === undefined || headers === null) return out;
  const items = typeof headers[Symbol.iterator] === "function" ? headers : Object.entries(headers);
  let n = 0;
  for (const [key, value] of items) {
    if (value === undefined || value === null) continue;
    const name = String(key).toLowerCase();
    const text = Array.isArray(value) ? value.join(", ") : String(value);
    if (secret.has(name) || name === "__proto__" || name.length + text.length > longest) continue;
    if (Object.hasOwn(out, name)) {
      out[name] += ", " + text;
    } else if (n < most) {
      out[name] = text;
      n++;
    }
  }
  return out;
}

const mostBody = 64 << 10; // how much the gate looks at

/** The beginning of a body as the API takes it; undefined if there is none. It may be a string or bytes. */
function plainBody(body) {
  if (body === undefined || body === null || body.length === 0 || body.byteLength === 0) return undefined;
  if (typeof body === "string") return body.slice(0, mostBody);
  const bytes = body instanceof ArrayBuffer ? new Uint8Array(body) : new Uint8Array(body.buffer, body.byteOffset, body.byteLength);
  return new TextDecoder().decode(bytes.subarray(0, mostBody));
}

module.exports = { plainHeaders, plainBody };
