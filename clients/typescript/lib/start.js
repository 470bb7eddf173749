// Finding a daemon, or starting one for this user. The Python client looks in the same places.
"use strict";

const { spawn } = require("node:child_process");
const fs = require("node:fs");
const net = require("node:net");
const os = require("node:os");
const path = require("node:path");
const { setTimeout: pause } = require("node:timers/promises");

const { binary, platformPackage } = require("./binary.js");
const { Client, DEFAULT_URL } = require("./client.js");
const { Unavailable } = require("./errors.js");

const idle = "10m"; // how long a daemon that was started here lives without requests
const within = 20_000; // how long it may take to start
const hint = "start it with: sluice serve; or set SLUICE_URL to where it is";

/** The address of the daemon: $SLUICE_URL, else the usual one if a daemon answers there, else that of this user's own daemon. */
async function locate(start) {
  if (process.env.SLUICE_URL) return process.env.SLUICE_URL;
  const at = new URL(DEFAULT_URL);
  if (await listens({ host: at.hostname, port: Number(at.port) })) return DEFAULT_URL;
  if (process.platform === "win32") throw new Unavailable(`no daemon answers at ${DEFAULT_URL}`, { hint });
  const socket = socketPath();
  if (!(await listens({ path: socket }))) {
    if (!start || /^(off|0|false|no)$/i.test(process.env.SLUICE_START ?? "")) {
      throw new Unavailable(`no daemon answers at ${DEFAULT_URL} or ${socket}`, { hint });
    }
    await launch(socket);
  }
  return "unix:" + socket;
}

/** Where this user's daemon listens: in a directory that nobody else can enter. */
function socketPath() {
  const runtime = process.env.XDG_RUNTIME_DIR;
  const dir = runtime ? path.join(runtime, "sluice") : path.join(os.tmpdir(), `sluice-${process.getuid()}`);
  fs.mkdirSync(dir, { mode: 0o700, recursive: true });
  const about = fs.lstatSync(dir);
  if (!about.isDirectory() || about.uid !== process.getuid() || (about.mode & 0o022) !== 0) {
    throw new Unavailable(`${dir} is not a directory of this user alone`, { hint: `remove it, or run chmod 700 ${dir}` });
  }
  return path.join(dir, "gate.sock");
}

/** Starts a daemon that outlives this process, and ends when nobody uses it. */
async function launch(socket) {
  const command = binary();
  if (command === undefined) {
    throw new Unavailable(`no daemon answers at ${DEFAULT_URL}, and the command sluice is not here`, {
      hint: `npm install ${platformPackage} brings it; or set SLUICE_URL to where a daemon is`,
    });
  }
  const args = ["serve", "--listen", "unix:" + socket, "--exit-idle", idle, "--json"];
  const log = fs.openSync(socket + ".log", "w", 0o600);
  let ended = false;
  const child = spawn(command, args, { detached: true, stdio: ["ignore", "ignore", log] });
  fs.closeSync(log);
  child.on("error", () => (ended = true));
  child.on("exit", () => (ended = true));
  child.unref();
  const why = "run it to see why: " + [command, ...args].join(" ");
  for (const end = performance.now() + within; performance.now() < end; await pause(20)) {
    const over = ended; // read first: another process may have been faster, and then this one ends
    if (await listens({ path: socket })) return;
    if (!over) continue;
    await pause(1000);
    if (await listens({ path: socket })) return;
    throw new Unavailable(`the daemon could not be started: ${said(socket)}`, { hint: why });
  }
  child.kill();
  throw new Unavailable(`the daemon did not start within ${within / 1000} s`, { hint: why });
}

function said(socket) {
  try {
    return fs.readFileSync(socket + ".log", "utf8").trim().split("\n")[0] || "it said nothing";
  } catch {
    return "it left no log";
  }
}

function listens(to) {
  return new Promise((resolve) => {
    const socket = net.connect({ ...to, timeout: 500 });
    const end = (yes) => {
      socket.destroy();
      resolve(yes);
    };
    socket.on("connect", () => end(true)).on("error", () => end(false)).on("timeout", () => end(false));
  });
}

let shared; // the client of everybody who names none, and the address it was made for

/**
 * The client of a daemon that answers: the given one, else one for the whole process. What it starts, others use too. A daemon that
 * ended is looked for again.
 */
async function gateOf({ client, start = true } = {}) {
  if (client !== undefined) return client;
  shared ??= locate(start).then((url) => new Client({ url }));
  const mine = shared;
  try {
    return await mine;
  } catch (error) {
    if (shared === mine) shared = undefined;
    throw error;
  }
}

/** Forgets the shared client: its daemon does not answer. */
async function forget(client) {
  if (shared !== undefined && (await shared.catch(() => undefined)) === client) {
    shared = undefined;
    client.close();
  }
}

module.exports = { gateOf, forget };
