// Client of the Sluice daemon: one gate that all callers of a shared API quota pass through. Types are in index.d.ts. The files are
// CommonJS, so that both require and import (index.mjs) get the same classes.
"use strict";

const { Client, DEFAULT_URL } = require("./lib/client.js");
const { Ended, Invalid, NotFound, Refused, RefusedNow, SluiceError, TimedOut, Unauthorized, Unavailable } = require("./lib/errors.js");
const { sluiceFetch } = require("./lib/fetch.js");
const { Lease } = require("./lib/lease.js");
const { GaveUp, Retry } = require("./lib/retry.js");
const { sluiceMiddleware } = require("./lib/middleware.js");
const { Ticket } = require("./lib/ticket.js");
const { sluiceInterceptor, sluiceProcessor } = require("./lib/workers.js");

module.exports = {
  Client, DEFAULT_URL, Ended, GaveUp, Invalid, Lease, NotFound, Refused, RefusedNow, Retry, SluiceError, Ticket, TimedOut, Unauthorized,
  Unavailable, sluiceFetch, sluiceInterceptor, sluiceMiddleware, sluiceProcessor,
};
