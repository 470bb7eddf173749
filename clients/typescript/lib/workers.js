// Workers that take their turn without waiting for it: a job that cannot go now is given back to its queue until the gate expects room.
"use strict";

const { RefusedNow } = require("./errors.js");
const { gateOf } = require("./start.js");

const unknown = 1_000; // when to ask again where the gate does not know: until somebody ends a request

/** When to come back after a refusal. Jobs that were refused together do not come back together. */
const waitOf = (refused, draw = Math.random) => Math.ceil((refused.retryAfterMs ?? unknown) * (1 + 0.1 * draw())) + 1;

/** The ticket, or how many milliseconds to come back in. */
async function turn(options, resource) {
  const { client: _client, start: _start, resource: _resource, ...how } = options;
  const client = await gateOf(options);
  try {
    return { client, ticket: await client.acquire(resource, { ...how, waitMs: 0 }) };
  } catch (error) {
    if (error instanceof RefusedNow) return { waitMs: waitOf(error), error };
    throw error;
  }
}

async function during({ client, ticket }, work) {
  try {
    return await work(ticket);
  } finally {
    await client._end(ticket, ticket.sent);
  }
}

/**
 * A processor for a BullMQ worker. A job whose turn it is not is delayed by the wait from the gate, and the worker takes another one.
 * @param {import("../index.d.ts").WorkerOptions} options
 */
function sluiceProcessor(options, processor) {
  return async (job, token, signal) => {
    const got = await turn(options, nameOf(options.resource, job));
    if (got.ticket === undefined) {
      await job.moveToDelayed(Date.now() + got.waitMs, token);
      const delayed = new Error(`${got.error.message}; the job comes back in ${got.waitMs} ms`);
      delayed.name = "DelayedError"; // by which BullMQ knows that the job has been moved
      throw delayed;
    }
    return during(got, (ticket) => processor(job, token, signal, ticket));
  };
}

/**
 * An interceptor for activities of a Temporal worker. An activity whose turn it is not fails with the wait from the gate as its next retry
 * delay: the server starts it again then, and no slot of the worker is taken.
 * @param {import("../index.d.ts").ActivityOptions} options
 */
function sluiceInterceptor(options) {
  return (context) => ({
    inbound: {
      async execute(input, next) {
        const resource = nameOf(options.resource, context.info);
        if (!resource) return next(input);
        const got = await turn(options, resource);
        if (got.ticket === undefined) throw held(got);
        return during(got, () => next(input));
      },
    },
  });
}

function held({ error, waitMs }) {
  const { ApplicationFailure } = require("@temporalio/common");
  return ApplicationFailure.create({ message: error.message, type: "SluiceHeld", nonRetryable: false, nextRetryDelay: waitMs, cause: error });
}

const nameOf = (resource, of) => (typeof resource === "function" ? resource(of) : resource);

module.exports = { sluiceInterceptor, sluiceProcessor };
