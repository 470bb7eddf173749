export {
  Client, DEFAULT_URL, Ended, GaveUp, Invalid, Lease, NotFound, Refused, RefusedNow, Retry, SluiceError, Ticket, TimedOut, Unauthorized,
  Unavailable, sluiceFetch, sluiceInterceptor, sluiceMiddleware, sluiceProcessor,
} from "./index.js";
