#!/usr/bin/env node
// The command sluice: it runs the one that npm has installed for this platform.
"use strict";

const { spawn } = require("node:child_process");
const os = require("node:os");

const { bundled, platformPackage } = require("../lib/binary.js");

const file = bundled();
if (file === undefined) {
  console.error(`error: the package ${platformPackage}, which brings the command for this platform, is not installed`);
  console.error("hint: install without --omit=optional; there are packages for Linux, macOS and Windows on x64 and arm64");
  process.exit(70);
}
const args = process.argv.slice(2);
if (process.execve !== undefined && process.platform !== "win32") process.execve(file, [file, ...args]); // it does not return

// A terminal sends its signals to both. Others are passed on.
const terminal = process.stdin.isTTY || process.stdout.isTTY;
for (const signal of ["SIGINT", "SIGTERM", "SIGHUP", "SIGQUIT"]) {
  process.on(signal, () => (terminal && signal !== "SIGTERM") || child.kill(signal));
}
const child = spawn(file, args, { stdio: "inherit" });
child.on("error", (error) => {
  console.error(`error: ${file}: ${error.message}`);
  process.exit(70);
});
child.on("exit", (code, signal) => process.exit(signal === null ? code : 128 + os.constants.signals[signal]));
