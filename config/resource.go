package config

// Resource is an API whose quota is shared.
type Resource struct {
	// The provider's dialect: it supplies limits, headers, costs and the meaning of errors.
	Provider string `yaml:"provider,omitempty"`
	// The address that the proxy sends to; the provider's by default.
	Upstream string `yaml:"upstream,omitempty"`
	// Hold callers (gate), or only count and report (observe).
	Mode Mode `yaml:"mode,omitempty"`
	// How the arrival of a request at the provider is bounded.
	Guard Guard `yaml:"guard,omitempty"`
	// The part of the provider's limits to use.
	Use Percent `yaml:"use,omitempty"`
	// How long a request may take to arrive at the provider when responses are slow to begin; by default 1.5% of the window, at least 1s and at most 30s.
	ArrivalSlack Duration `yaml:"arrival_slack,omitempty"`
	// How many requests may wait.
	MaxWaiting int `yaml:"max_waiting,omitempty" jsonschema:"minimum=1,maximum=1048576"`
	// How many agents, users or tools get their own meter for a limit scoped by them; models and keys get a tenth of that. All others share one meter.
	MaxMeters int `yaml:"max_meters,omitempty" jsonschema:"minimum=10,maximum=1048576"`
	// How long a ticket lives if it is never closed.
	TTL Duration `yaml:"ttl,omitempty"`
	// How long the proxy holds a client's request before it answers 429.
	ClientDeadline Duration `yaml:"client_deadline,omitempty"`
	// How often the proxy sends a keep-alive to a client whose stream it holds; a value of client_deadline or more sends none.
	KeepAlive Duration `yaml:"keep_alive,omitempty"`
	// The traffic light on quotas that have to last until a reset.
	Light Light `yaml:"light,omitempty"`
	// Slows lower classes before a quota is used up.
	Breaker Breaker `yaml:"breaker,omitempty"`
	// How long all callers pause after a 429.
	Backoff Backoff `yaml:"backoff,omitempty"`
	// The part of a quota that has to last until a reset which agents leave to a person at the keyboard.
	Reserve Percent `yaml:"reserve,omitempty"`
	// When a subscription's window is used up and the provider sells more: lower classes continue at extra cost (on), or wait for the reset (off). Off by default.
	Overage Switch `yaml:"overage,omitempty"`
	// Count the provider's limits, and pause after refusals, for each API key separately.
	Split Split `yaml:"split,omitempty"`
	// With split: key or a limit per key, the environment variable that holds the key of commands such as sluice acquire.
	KeyEnv string `yaml:"key_env,omitempty"`
	// Several keys, or addresses, to send requests with: each request uses the first one that has room.
	Keys []Key `yaml:"keys,omitempty"`
	// Put the key into requests, so that callers need none.
	Inject *Inject `yaml:"inject,omitempty"`
	// Keep requests that were given up, with their bodies, so that sluice dlq can send them again. Off by default, because bodies are private.
	DeadLetters Switch `yaml:"dead_letters,omitempty"`
	// When a client goes away: its concurrency slot is free at once (free), or held for the usual time (hold). By default as the provider does.
	Abort Abort `yaml:"abort,omitempty"`
	// The limits that the provider enforces, and the limits that you add.
	Limits []Limit `yaml:"limits,omitempty"`
}

// Light is the traffic light on quotas that have to last until a reset.
type Light struct {
	Off bool `yaml:"-"`
	// Below this percentage only the highest class proceeds.
	Green Percent `yaml:"green,omitempty"`
	// Below this percentage only emergencies proceed.
	Red Percent `yaml:"red,omitempty"`
	// Where the light applies: to quotas that have to last until a reset (stocks), or to every limit of the provider (all).
	Bind Bind `yaml:"bind,omitempty"`
	// Thresholds shrink with the time left until the reset (shrink), or stay (static).
	Mode LightMode `yaml:"mode,omitempty"`
}

// Breaker forecasts when a quota will be used up.
type Breaker struct {
	Off bool `yaml:"-"`
	// Trip if the quota will be used up within this time, and before its reset.
	Within Duration `yaml:"within,omitempty"`
	// How many reports of what remains the forecast uses.
	Samples int `yaml:"samples,omitempty" jsonschema:"minimum=3,maximum=64"`
	// Slow lower classes down (glide), stop them (open), or neither (off).
	Mode BreakerMode `yaml:"mode,omitempty"`
}

// Backoff is how long all callers pause after a 429.
type Backoff struct {
	// The first pause.
	Start Duration `yaml:"start,omitempty"`
	// The factor by which each further pause is longer.
	Factor int `yaml:"factor,omitempty" jsonschema:"minimum=1,maximum=100"`
	// The longest pause.
	Cap Duration `yaml:"cap,omitempty"`
}

// Inject configures where the proxy puts a key and where it gets the key from.
type Inject struct {
	// The header, such as x-api-key.
	Header string `yaml:"header,omitempty"`
	// The environment variable that holds the key.
	Env string `yaml:"env,omitempty"`
	// The text before the key in the header, such as "Bearer ".
	Prefix string `yaml:"prefix,omitempty"`
}

// Key is one of several keys or addresses of a resource. Each has its own limits and pauses.
type Key struct {
	// The environment variable that holds the key.
	Env string `yaml:"env,omitempty"`
	// The address that requests with this key go to; the resource's by default.
	Upstream string `yaml:"upstream,omitempty"`
	// The share of requests for this key while several keys have room, compared with the others; 1 by default.
	Share int `yaml:"share,omitempty" jsonschema:"minimum=1,maximum=1000"`
}

// Limit is one constraint on a resource.
type Limit struct {
	// The name, unique within the resource.
	Name string `yaml:"name,omitempty" jsonschema:"required"`
	// The amount per window: 80/min, 30/4s, 5000/h, 10000/day.
	Size Rate `yaml:"size,omitempty"`
	// When a charge is returned. By default a limit with burst is a bucket, one with concurrency a concurrency limit, any other a rolling window.
	Kind Kind `yaml:"kind,omitempty"`
	// How much of a bucket can be spent at once.
	Burst int64 `yaml:"burst,omitempty" jsonschema:"minimum=1,maximum=1099511627776"`
	// How many requests may be in progress at the same time.
	Concurrency int64 `yaml:"concurrency,omitempty" jsonschema:"minimum=1,maximum=1099511627776"`
	// What is counted: requests, input_tokens, output_tokens, tokens, points, work, or any name.
	Unit string `yaml:"unit,omitempty"`
	// One limit of this size for each of these.
	Per []Scope `yaml:"per,omitempty"`
	// When a fixed window resets: a time of day and its zone.
	Resets TimeOfDay `yaml:"resets,omitempty"`
}
