// Requests that were given up, for the daemon's dead letters. Keys never leave the process.
"use strict";

// Parts of the names of headers and query parameters that may hold secrets, as the daemon has them.
const secret =
  /auth|key|token|secret|cookie|passw|credential|signature|session|jwt|bearer|cert|assertion|x-amz-security|sig/i;
const harmless = new Set(["idempotency-key", "x-idempotency-key"]);
const least = 8; // characters of a secret: what is shorter occurs by chance
const most = 900_000; // bytes of a body, as JSON

const isSecret = (name) => secret.test(name) && !harmless.has(name.toLowerCase());

/** The request of a call of fetch, undefined if there is none. */
function letterOf([input, init] = []) {
  const asked = typeof input === "object" && input !== null && "url" in input ? input : undefined;
  const url = asked?.url ?? (typeof input === "string" || input instanceof URL ? String(input) : undefined);
  if (url === undefined) return undefined;
  const body = init?.body ?? (asked?.body ? null : "");
  return { method: init?.method ?? asked?.method ?? "GET", url, headers: init?.headers ?? asked?.headers, body };
}

/** The request as the daemon takes it, without secrets. */
function plainLetter({ method, url, headers, body = "" }) {
  const said = { method: method.toUpperCase(), headers: {}, left_out: [] };
  const values = [];
  for (const [name, value] of new Headers(headers ?? {})) {
    if (isSecret(name)) {
      said.left_out.push(name);
      values.push(value, value.slice(value.lastIndexOf(" ") + 1)); // "Bearer KEY"
    } else {
      said.headers[name] = value;
    }
  }
  const at = new URL(url, "http://provider.invalid");
  const kept = [];
  for (const part of at.search.slice(1).split("&").filter(Boolean)) {
    const [[name, value]] = new URLSearchParams(part);
    if (isSecret(name)) {
      said.left_out.push("?" + name);
      values.push(value, part.slice(part.indexOf("=") + 1));
    } else {
      kept.push(part);
    }
  }
  said.path = at.pathname + (kept.length ? "?" + kept.join("&") : "");
  const bytes = bytesOf(body);
  if (!bytes || values.some((v) => v.length >= least && bytes.includes(v))) return { ...said, body_lost: true };
  const text = bytes.toString("utf8");
  const plain = Buffer.from(text).equals(bytes) ? text : { base64: bytes.toString("base64") };
  return Buffer.byteLength(JSON.stringify(plain)) > most ? { ...said, body_lost: true } : { ...said, body: plain };
}

/** A body that can be read more than once, as bytes; else undefined. */
function bytesOf(body) {
  if (typeof body === "string") return Buffer.from(body);
  if (body instanceof URLSearchParams) return Buffer.from(String(body));
  if (body instanceof ArrayBuffer) return Buffer.from(body);
  if (ArrayBuffer.isView(body)) return Buffer.from(body.buffer, body.byteOffset, body.byteLength);
  return undefined;
}

module.exports = { bytesOf, isSecret, letterOf, plainLetter };
