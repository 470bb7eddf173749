// Connections to the daemon: kept open, over TCP, TLS or a Unix socket.
"use strict";

const http = require("node:http");
const https = require("node:https");

const { Invalid, SluiceError, TimedOut, Unavailable, problem, whose } = require("./errors.js");

const keep = 16; // idle connections
const stale = 60_000; // the daemon closes idle ones after two minutes
const maxBody = 64 << 20; // of an answer

const broken = new Set(["ECONNRESET", "EPIPE"]);

/** Sends requests to one daemon. */
class Wire {
  #token;
  #timeoutMs;
  #target;
  #prefix = "";
  #agent;
  #request;
  #closed = false;

  constructor({ url, token, timeoutMs, tls }) {
    if (/[\r\n\0]/.test(token)) throw new TypeError("token must not contain a line break or a NUL");
    this.url = url;
    this.#token = token;
    this.#timeoutMs = timeoutMs;
    const options = { keepAlive: true, maxFreeSockets: keep, timeout: stale, scheduling: "lifo" };
    if (url.startsWith("unix:")) {
      const socketPath = url.slice("unix:".length).replace(/^\/\/(?=\/)/, "");
      if (socketPath === "") throw new TypeError("url unix: needs the path of a socket, such as unix:/run/sluice.sock");
      this.#target = { socketPath, host: "localhost" };
      this.#agent = new http.Agent(options);
      this.#request = http.request;
      return;
    }
    let u;
    try {
      u = new URL(url);
    } catch {
      u = undefined;
    }
    if (u === undefined || (u.protocol !== "http:" && u.protocol !== "https:")) {
      throw new TypeError("url must be http://HOST:PORT, https://HOST:PORT or unix:PATH");
    }
    if (u.username !== "" || u.password !== "" || u.search !== "" || u.hash !== "") {
      throw new TypeError("url must contain only an address and a path; pass a token as token");
    }
    this.#prefix = u.pathname.replace(/\/+$/, "");
    this.#target = { host: u.hostname.replace(/^\[|\]$/g, ""), port: u.port === "" ? undefined : Number(u.port) };
    const secure = u.protocol === "https:";
    this.#agent = secure ? new https.Agent({ ...options, ...tls }) : new http.Agent(options);
    this.#request = secure ? https.request : http.request;
  }

  /**
   * Sends one request and returns its JSON, undefined if there is none. extraMs is how much longer than usual the answer may
   * take; again allows a second try where a connection that was kept open turns out to be closed.
   */
  async call(method, path, body, { query, extraMs = 0, again = true, signal } = {}) {
    if (this.#closed) throw new Invalid("the client is closed");
    const text = body === undefined ? undefined : JSON.stringify(body);
    const asked = query && new URLSearchParams(query).toString();
    const full = this.#prefix + path + (asked ? "?" + asked : "");
    for (;;) {
      signal?.throwIfAborted();
      const got = await this.#once(method, full, text, this.#timeoutMs + extraMs, signal);
      if (got.error === undefined) return read(got);
      if (got.reused && again && broken.has(got.error.code)) continue; // it was closed while nobody used it
      throw this.#unreachable(got.error);
    }
  }

  #once(method, path, text, withinMs, signal) {
    return new Promise((resolve, reject) => {
      const headers = { Accept: "application/json", "User-Agent": "sluice-typescript" };
      if (text !== undefined) {
        headers["Content-Type"] = "application/json";
        headers["Content-Length"] = Buffer.byteLength(text);
      }
      if (this.#token !== "") headers.Authorization = "Bearer " + this.#token;
      const req = this.#request({ ...this.#target, method, path, headers, agent: this.#agent });
      let cut; // why it was cut off here: what node says then differs
      const cutOff = (why) => {
        cut = why;
        req.destroy(why);
      };
      const late = setTimeout(() => {
        cutOff(new TimedOut(`the daemon at ${this.url} did not answer within ${withinMs} ms`, {
          hint: "is it running? timeoutMs gives it longer",
        }));
      }, withinMs);
      const abort = () => cutOff(new Error("aborted"));
      const end = () => {
        clearTimeout(late);
        signal?.removeEventListener("abort", abort);
      };
      const fail = (error) => {
        end();
        if (signal?.aborted) reject(signal.reason);
        else resolve({ error: cut ?? error, reused: req.reusedSocket });
      };
      signal?.addEventListener("abort", abort, { once: true });
      req.on("error", fail);
      req.on("close", () => fail(new Error("the connection was closed"))); // does nothing after an answer
      req.on("response", (res) => {
        const parts = [];
        let size = 0;
        res.on("data", (part) => {
          parts.push(part);
          size += part.length;
          if (size > maxBody) cutOff(new SluiceError("the answer is too large", { hint: whose }));
        });
        res.on("error", fail);
        res.on("end", () => {
          end();
          resolve({ status: res.statusCode, headers: res.headers, text: Buffer.concat(parts).toString("utf8") });
        });
      });
      req.end(text);
    });
  }

  #unreachable(error) {
    if (error instanceof SluiceError) return error;
    const what = error.message || error.code || error.errors?.map((e) => e.message).join("; ") || "no reason was given";
    return new Unavailable(`the daemon at ${this.url} cannot be reached: ${what}`, {
      hint: "start it with: sluice serve; or set SLUICE_URL to where it is",
      cause: error,
    });
  }

  close() {
    this.#closed = true;
    this.#agent.destroy();
  }
}

function read({ status, headers, text }) {
  if (status >= 400) throw problem(status, headers, text);
  if (status < 200 || status >= 300) throw new SluiceError(`the answer has status ${status}`, { status, hint: whose });
  if (text === "") return undefined;
  try {
    return JSON.parse(text);
  } catch {
    throw new SluiceError("the answer is not JSON", { status, hint: whose });
  }
}

module.exports = { Wire };
