// Client of the Sluice daemon: one gate that all callers of a shared API quota pass through. Types are in index.d.ts.
export { Client, DEFAULT_URL } from "./lib/client.js";
export {
  Ended, Invalid, NotFound, Refused, RefusedNow, SluiceError, TimedOut, Unauthorized, Unavailable,
} from "./lib/errors.js";
export { Lease } from "./lib/lease.js";
export { GaveUp, Retry } from "./lib/retry.js";
export { Ticket } from "./lib/ticket.js";
