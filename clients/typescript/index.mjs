export {
  Client, DEFAULT_URL, Ended, GaveUp, Invalid, Lease, NotFound, Refused, RefusedNow, Retry, SluiceError, Ticket, TimedOut, Unauthorized,
  Unavailable, sluiceFetch,
} from "./index.js";
