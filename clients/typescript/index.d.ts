// Nothing here needs @types/node or the library "dom". Types of theirs are used where a program has them.
type Global<Name extends string, Without> = typeof globalThis extends { [N in Name]: { prototype: infer T } } ? T : Without;

/** The program's own `AbortSignal`, else what the client uses of one. */
export type Signal = Global<
  "AbortSignal",
  {
    readonly aborted: boolean;
    readonly reason: any;
    throwIfAborted(): void;
    addEventListener(type: "abort", listener: () => void, options?: { once?: boolean }): void;
    removeEventListener(type: "abort", listener: () => void): void;
  }
>;

/** The program's own `fetch`, else any function like it. */
export type Fetch = typeof globalThis extends { fetch: infer F } ? F : (url: string, init?: any) => Promise<any>;

/** Certificates and keys in PEM. */
export type PEM = string | Uint8Array;

/** What a connection over TLS needs besides, as `node:tls` has it. */
export interface TLSOptions {
  ca?: PEM | PEM[] | undefined;
  cert?: PEM | PEM[] | undefined;
  key?: PEM | (PEM | { pem: PEM; passphrase?: string | undefined })[] | undefined;
  passphrase?: string | undefined;
}

/** The default address of the daemon. */
export const DEFAULT_URL: string;

export interface ClientOptions {
  /** `http://HOST:PORT`, `https://HOST:PORT` or `unix:PATH`; else `$SLUICE_URL`, else {@link DEFAULT_URL}. */
  url?: string;
  /** The daemon's token, if it wants one; else `$SLUICE_TOKEN`. */
  token?: string;
  /** Who asks where a call does not say; else `$SLUICE_AGENT`, else whom the token is for, or the login name without one. */
  agent?: string;
  /** How long the daemon may take to answer, besides the time that a call waits for its turn. 10,000 if it is not said. */
  timeoutMs?: number;
  /** What `https:` needs besides: `ca`, `cert`, `key`. */
  tls?: TLSOptions;
  /** Told what went wrong where nothing is thrown: heartbeats, and the end of tickets. Else it is a warning of the process. */
  onWarning?: (error: Error, what: string) => void;
}

export interface Cancellable {
  /** Breaks the call off; it throws the signal's reason then. */
  signal?: Signal;
}

export interface AcquireOptions extends Cancellable {
  agent?: string;
  class?: string;
  user?: string;
  tool?: string;
  model?: string;
  /** Label of the API key, as `sluice key NAME` prints it; never the key itself. */
  key?: string;
  /** What the request costs, by unit, usd in dollars; one request if it is not said. */
  units?: Record<string, number>;
  /** How long to wait for the turn: 30,000 if it is not said, 0 does not wait, 600,000 at most. */
  waitMs?: number;
  emergency?: boolean;
  /** It is sent again. */
  retry?: boolean;
  /** How long the ticket lives unless it is ended. */
  ttlMs?: number;
  /** For {@link Client.withTicket}: nothing was sent before `sending` or `answer` is called. */
  explicit?: boolean;
}

/** How patient a caller is. */
export interface RetryOptions {
  /** How often a request is sent at most, the first send included. 6 by default. */
  attempts?: number;
  /** How long all of it may take until the last send starts. Ten minutes by default. */
  deadlineMs?: number;
  /** Full jitter: the wait before retry n, from 0 on, is between 0 and the smaller of capMs (30 s) and baseMs (1 s) times 2 to the n. */
  baseMs?: number;
  capMs?: number;
  /** The shortest and longest wait of callers that say their class. `{}` means full jitter for everyone. */
  windows?: Record<string, [number, number]>;
  /** Whether to send again after an error of the request. Without it every such error is final. */
  on?: (error: unknown) => boolean;
}

/** What follows a failed send. */
export interface RetryDecision {
  waitMs: number;
  give: boolean;
  reason: "backoff" | "hint" | "priority" | "queue" | "attempts" | "deadline";
}

export class Retry {
  constructor(options?: RetryOptions);
  next(failure: { sent: number; elapsedMs?: number; class?: string; hintMs?: number; held?: boolean }, draw?: () => number): RetryDecision;
}

/** An HTTP request, to be kept as a dead letter if it is given up. Keys in it are not sent to the daemon. */
export interface Letter {
  method: string;
  url: string;
  headers?: Iterable<readonly [string, string]> | Record<string, string>;
  /** `null` means that the body cannot be kept. */
  body?: string | Global<"URLSearchParams", never> | ArrayBuffer | ArrayBufferView | null;
}

/** Options of {@link Client.do}. */
export interface DoOptions extends Omit<AcquireOptions, "waitMs" | "explicit"> {
  policy?: Retry | RetryOptions;
  /** The request, which is kept as a dead letter if it is given up and the resource has `dead_letters: on`. */
  letter?: Letter;
}

/** Options of {@link Client.gated}. */
export interface GatedOptions extends Omit<DoOptions, "letter"> {
  /** True takes the request from the arguments, which have to be those of `fetch`. */
  letter?: Letter | boolean;
}

/** A response of fetch, or anything with a status and headers. */
export interface AnyResponse {
  status: number;
  headers?: AnswerHeaders;
}

/** What is left of a limit. */
export interface Level {
  name: string;
  kind: "bucket" | "rolling" | "fixed" | "concurrency";
  unit: string;
  /** null: not known yet. */
  limit: number | null;
  remaining: number | null;
}

/** What an answer meant to the gate. */
export interface Verdict {
  verdict: string;
  /** The resource is held now: ask for a new ticket at once instead of sleeping. */
  held: boolean;
}

/** Headers as fetch, node or a plain object has them. */
export type AnswerHeaders =
  | Iterable<readonly [string, string]>
  | Record<string, string | number | readonly string[] | null | undefined>;

/** The body of an answer, as far as it was read. */
export type AnswerBody = string | ArrayBuffer | ArrayBufferView;

/** Permission to send one request. It must be ended, with close or cancel; ending it twice does no harm. */
export class Ticket {
  private constructor();
  readonly id: string;
  readonly resource: string;
  readonly agent: string;
  readonly class: string;
  readonly waitedMs: number;
  readonly limits: Level[];
  /** Whether it was closed or cancelled here. */
  readonly ended: boolean;
  /** Whether the request counts as sent: see {@link Client.withTicket}. */
  readonly sent: boolean;
  /** Says that the request goes out now. It only matters with `explicit`. */
  sending(): void;
  /**
   * Tells the gate what the provider said. Call it as soon as the headers are there, before the body. Pass `body` for refusals
   * (status 400 and above): some are explained only by their text, such as the 403 of a secondary rate limit. The gate reads
   * its first 64 KiB, and neither stores, logs nor shows it.
   */
  answer(status: number, headers?: AnswerHeaders, options?: { body?: AnswerBody } & Cancellable): Promise<Verdict>;
  /** Makes an unsent ticket fresh. It keeps its place, and may wait. */
  renew(options?: { waitMs?: number } & Cancellable): Promise<void>;
  /** Remembers what was really used, for when it is closed. */
  used(usage: Record<string, number>): void;
  /** Ends it: the request is over. What usage does not name keeps its estimate; usd is in dollars. */
  close(usage?: Record<string, number>): Promise<void>;
  /** Gives it back unsent, with full refund. */
  cancel(): Promise<void>;
}

/** What an agent is told. */
export interface Standing {
  light: "green" | "amber" | "red";
  /** Its part of the quota; null if no limit is known. */
  allocated: number | null;
  /** Whether to start new work; if not, chain names the agents that this is due to. Work that runs is to go on. */
  startNewWork: boolean;
  chain: string[];
  reason: string;
  /** The machine that has the agent's lease now, if it is another; else empty. */
  takenOverBy: string;
}

export interface AgentOptions extends Cancellable {
  class?: string;
  user?: string;
  /** The name of the host if it is not said. */
  machine?: string;
  waitsFor?: string[];
  resources?: string[];
}

export interface LeaseOptions extends Omit<AgentOptions, "signal"> {
  /** How often heartbeats are sent: 60,000 if it is not said. */
  everyMs?: number;
}

/** An agent that is alive: heartbeats are sent until it is closed. */
export class Lease {
  private constructor();
  /** What the agent was told last. */
  readonly standing: Standing;
  readonly startNewWork: boolean;
  /** Why the last heartbeat failed, undefined if it did not. */
  readonly error: Error | undefined;
  /** Sends a heartbeat at once, with what has changed. */
  update(changed?: { waitsFor?: string[] }): Promise<Standing>;
  /** Sends a heartbeat at once. */
  beat(): Promise<Standing>;
  /** Takes the agent off. */
  close(): Promise<void>;
}

/** The model to use now. */
export interface Route {
  model: string;
  resource: string;
  /** Undefined if unknown. */
  waitMs: number | undefined;
  usdPerMtok: number;
  reason: string;
}

/** A request in the queue and why it is there. */
export interface Waiting {
  ticket: string;
  agent: string;
  class: string;
  limit: string;
  held_by: string[];
  /** When the last unanswered ticket that holds the limit ends, if none is closed before; null if time alone makes room. */
  held_until: string | null;
  position: number;
  expected_at: string | null;
  reason: string;
  /** What the pause covers that holds the request, such as `model=opus`; empty for the whole resource. */
  scope: string;
}

export interface LimitStatus extends Level {
  scope: string;
  used: number;
  outside: number;
  reset_at: string | null;
}

export interface ResourceStatus {
  name: string;
  key: string;
  mode: "gate" | "observe";
  state: "failing" | "degraded" | "paused" | "queueing" | "flowing" | "idle";
  /** Why it is in that state, in words. */
  reason: string;
  until: string | null;
  /** null, as all figures, while the daemon cannot reach its store. */
  light: "green" | "amber" | "red" | null;
  light_binds: boolean | null;
  /** The provider refuses requests until a person adds credit or raises a limit there. */
  billing_stop: boolean;
  paused_until: string | null;
  pause_reason: string;
  consecutive_429: number | null;
  last_429: string | null;
  past_gate?: number | null;
  past_hosts?: Record<string, number> | null;
  waiting: Record<string, number>;
  in_flight: number | null;
  limits: LimitStatus[];
  models: { model: string; requested: string; waiting: number }[];
  sent: number | null;
  throttled: number | null;
  retried: number | null;
}

export interface AgentStatus {
  name: string;
  class: string;
  user: string;
  machine: string;
  allocated: number | null;
  used: number;
  lease_started_at: string | null;
  lease_expires_at: string | null;
  state: string;
  pause_chain: string[];
}

/** The state of the gate, as `sluice status --json` has it. */
export interface Status {
  store: string;
  resources: ResourceStatus[];
  agents: AgentStatus[];
}

/** Who has which part of a resource, as `sluice pool --json` has it. */
export interface Pool {
  totalLimit: number | null;
  resetAt: string | null;
  allocations: Record<string, { priority: number; allocated: number | null; used: number; leaseExpiry: string | null }>;
}

/** Asks a daemon. One client serves a whole program, and keeps its connections open. */
export class Client {
  constructor(options?: ClientOptions);
  readonly url: string;
  readonly agent: string;
  /** Waits for the turn. {@link RefusedNow} tells that it did not come, {@link Refused} that it never will. */
  acquire(resource: string, options?: AcquireOptions): Promise<Ticket>;
  /**
   * Runs a function with a ticket, and ends the ticket. A request may have been sent unless you say that it was not, so the
   * ticket is closed, and its charge stays, also if the function throws. To give it back, cancel it before the request is
   * sent. With `explicit` it is the other way round: until `sending` or `answer` is called it is given back.
   */
  withTicket<T>(resource: string, fn: (ticket: Ticket) => T | Promise<T>): Promise<T>;
  withTicket<T>(resource: string, options: AcquireOptions, fn: (ticket: Ticket) => T | Promise<T>): Promise<T>;
  /**
   * Sends a request when it is its turn, and again if that can help: after a refusal, an overload or a failure of the provider.
   * The function sends it once, and returns the response. Waits and walls are those of `policy`. {@link GaveUp} tells that a wall
   * was reached. Use it only for requests that may be repeated.
   */
  do<R extends AnyResponse>(resource: string, send: (ticket: Ticket) => R | Promise<R>): Promise<R>;
  do<R extends AnyResponse>(resource: string, options: DoOptions, send: (ticket: Ticket) => R | Promise<R>): Promise<R>;
  /**
   * An existing function, `fetch` if it is not said, behind the gate. It is called as before, waits for its turn, and is repeated as
   * in `do`. When a wall is reached it returns the last response, if there is one.
   */
  gated(resource: string, options?: GatedOptions): Fetch;
  gated<A extends unknown[], R extends AnyResponse>(resource: string, options: GatedOptions, request: (...args: A) => R | Promise<R>): (...args: A) => Promise<R>;
  gated<A extends unknown[], R extends AnyResponse>(resource: string, request: (...args: A) => R | Promise<R>): (...args: A) => Promise<R>;
  /** Says that an agent is alive. The first one takes its slot. */
  heartbeat(agent?: string, options?: AgentOptions): Promise<Standing>;
  /** Says that an agent has ended. What it held goes to the others at once. */
  leave(agent?: string, options?: { machine?: string } & Cancellable): Promise<void>;
  /** Takes a lease, and keeps it until it is closed. */
  lease(agent?: string, options?: LeaseOptions): Promise<Lease>;
  /** The same as long as a function runs. */
  withLease<T>(agent: string | undefined, fn: (lease: Lease) => T | Promise<T>): Promise<T>;
  withLease<T>(agent: string | undefined, options: LeaseOptions, fn: (lease: Lease) => T | Promise<T>): Promise<T>;
  /** Tells of an answer to a request that was sent without a ticket. It returns what it means. */
  observe(resource: string, status: number, headers?: AnswerHeaders, options?: { body?: AnswerBody; agent?: string; model?: string } & Cancellable): Promise<string>;
  /** Holds all requests, by default for a minute. */
  pause(resource: string, options?: { forMs?: number; reason?: string } & Cancellable): Promise<void>;
  resume(resource: string, options?: Cancellable): Promise<void>;
  /** The model to use now for a task, as the limits apply to the agent. */
  route(task: string, options?: { units?: Record<string, number>; agent?: string; class?: string; user?: string } & Cancellable): Promise<Route>;
  status(options?: Cancellable): Promise<Status>;
  pool(resource: string, options?: Cancellable): Promise<Pool>;
  /** Who waits, and why. */
  why(options?: { resource?: string; agent?: string; ticket?: string } & Cancellable): Promise<Waiting[]>;
  /** What was sent since a time: `24h`, `7d`, or one in RFC 3339. */
  report(options?: { since?: string } & Cancellable): Promise<{ since: string; resources: unknown[] }>;
  /** Closes the connections. Tickets that are not ended lapse. */
  close(): void;
}

/** The gate said no, or could not be asked. */
export class SluiceError extends Error {
  constructor(detail: string, more?: Partial<Pick<SluiceError, "status" | "hint" | "limit" | "why" | "retryAfterMs" | "retryAt" | "chain" | "heldBy" | "heldUntil">> & { cause?: unknown });
  /** Of HTTP; 0 if the daemon was not reached. */
  readonly status: number;
  readonly detail: string;
  readonly hint: string;
  readonly limit: string;
  readonly why: string;
  /** When to try again; undefined if unknown. */
  readonly retryAfterMs: number | undefined;
  readonly retryAt: Date | undefined;
  readonly chain: string[];
  /** The agents of unanswered tickets that hold the limit: the time depends on them. */
  readonly heldBy: string[];
  /** When the last of these tickets ends, if none is closed before. */
  readonly heldUntil: Date | undefined;
}
/** The request makes no sense: a field is wrong (400, 413, 415, 421). */
export class Invalid extends SluiceError {}
/** The daemon wants a token, and got none that it knows (401). */
export class Unauthorized extends SluiceError {}
/** It is ruled out, now and later: a budget, a class, a cost above the limit (403). */
export class Refused extends SluiceError {}
/** There is no such resource, ticket or task (404). */
export class NotFound extends SluiceError {}
/** The ticket has ended (409). */
export class Ended extends SluiceError {}
/** The turn did not come within the wait (429). */
export class RefusedNow extends SluiceError {}
/** A request was not answered well, and is not sent again. */
export class GaveUp extends SluiceError {
  reason: "attempts" | "deadline" | "billing";
  /** How often it was sent. */
  sends: number;
  /** The last response, undefined if there was none. */
  response: any;
}
/** The daemon, or the store behind it, cannot be reached (503, or no answer at all). */
export class Unavailable extends SluiceError {}
/** The daemon did not answer in time. */
export class TimedOut extends Unavailable {}

/** Who sends, and what for: what every adapter takes. */
export interface GateOptions {
  /** The resource; else the one of the configuration or the presets that has the address of the request. */
  resource?: string | undefined;
  /** Who sends; else `$SLUICE_AGENT`, else whom the token is for, or the login name. */
  agent?: string | undefined;
  class?: string | undefined;
  user?: string | undefined;
  tool?: string | undefined;
  /** Label of the API key, as `sluice key NAME` prints it; never the key itself. */
  key?: string | undefined;
  /** How long a request may wait in all, resends included: the resource's `client_deadline` if it is not said, 600,000 at most. */
  waitMs?: number | undefined;
  emergency?: boolean | undefined;
  /** The daemon to ask; else that of `$SLUICE_URL`, else one on this machine, which is started if none answers. */
  client?: Client | undefined;
  /** False starts no daemon, and throws {@link Unavailable} if none answers. So does `SLUICE_START=off`. */
  start?: boolean | undefined;
}

export interface FetchOptions extends GateOptions {
  /** What sends; else the global `fetch`. */
  fetch?: ((input: any, init?: any) => Promise<any>) | undefined;
}

/**
 * A `fetch` whose requests pass the gate: for `new OpenAI({ fetch })`, `createOpenAI({ fetch })`, axios, undici and any other client that
 * takes one. A request waits for its turn, is sent by this process, and is sent again where the daemon says that it helps. Its response
 * is settled when its body ends, is cancelled, or the signal fires. A request to an address that no resource has is sent as it is.
 *
 * It throws {@link RefusedNow} if the turn does not come in time and {@link Refused} if it never will.
 */
export function sluiceFetch(options?: string | FetchOptions): Fetch;

/** Options of {@link sluiceMiddleware}. */
export interface MiddlewareOptions extends GateOptions {
  /** What a call reserves until its usage is known, such as `{ input_tokens: 2000, output_tokens: 500 }`. */
  units?: Record<string, number> | undefined;
  /** The version of the SDK's models: `"v4"` of AI SDK 7 if it is not said, `"v3"` of AI SDK 6. */
  specificationVersion?: "v3" | "v4" | undefined;
}

/**
 * A middleware for `wrapLanguageModel` of the Vercel AI SDK. The resource is the one named like the provider if it is not said. The gate
 * hears of tokens only when a call has ended; {@link sluiceFetch} tells it before, so prefer it where the provider takes a `fetch`.
 */
export function sluiceMiddleware(options?: MiddlewareOptions): {
  specificationVersion: any;
  wrapGenerate(options: any): Promise<any>;
  wrapStream(options: any): Promise<any>;
};

/** Options of {@link sluiceProcessor}. */
export interface WorkerOptions<Job = any> extends Omit<GateOptions, "resource" | "waitMs"> {
  /** The resource of a job. */
  resource: string | ((job: Job) => string);
  model?: string | undefined;
  units?: Record<string, number> | undefined;
}

/**
 * A processor for a BullMQ worker, around your own. A job whose turn it is not is delayed by the wait from the gate, and the worker goes on
 * with other jobs. The ticket comes as the fourth argument; call `ticket.answer` with the provider's response.
 */
export function sluiceProcessor<Job extends { moveToDelayed(timestamp: number, token?: string): Promise<void> }, Result>(
  options: WorkerOptions<Job>,
  processor: (job: Job, token: string | undefined, signal: any, ticket: Ticket) => Promise<Result>,
): (job: Job, token?: string, signal?: any) => Promise<Result>;

/** Options of {@link sluiceInterceptor}. */
export interface ActivityOptions<Info = any> extends Omit<GateOptions, "resource" | "waitMs"> {
  /** The resource of an activity. An activity without one needs no turn. */
  resource: string | ((info: Info) => string | undefined);
  model?: string | undefined;
  units?: Record<string, number> | undefined;
}

/**
 * An interceptor for `interceptors.activity` of a Temporal worker. An activity whose turn it is not fails with an `ApplicationFailure` of
 * type `SluiceHeld` whose next retry delay is the wait from the gate: it takes no slot of the worker while it is held, but an attempt of
 * its retry policy.
 */
export function sluiceInterceptor(options: ActivityOptions): (context: any) => { inbound: { execute(input: any, next: any): Promise<unknown> } };
