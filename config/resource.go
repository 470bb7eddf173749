package config

// Resource is an API whose quota is shared.
type Resource struct {
	// The dialect it speaks: limits, headers, costs and the meaning of errors come with it.
	Provider string `yaml:"provider,omitempty"`
	// The address that the proxy sends to; without one it is the provider's.
	Upstream string `yaml:"upstream,omitempty"`
	// Hold callers (gate), or only count and report (observe).
	Mode Mode `yaml:"mode,omitempty"`
	// How the arrival of a request at the provider is bounded.
	Guard Guard `yaml:"guard,omitempty"`
	// The part of the provider's limits to use.
	Use Percent `yaml:"use,omitempty"`
	// How long a request may take to arrive where answers are slow to begin; without it 1.5% of the window, at least 1s, at most 30s.
	ArrivalSlack Duration `yaml:"arrival_slack,omitempty"`
	// How many requests may wait.
	MaxWaiting int `yaml:"max_waiting,omitempty" jsonschema:"minimum=1,maximum=1048576"`
	// How many agents, users or tools have a meter of their own for a limit scoped by them; models and keys have a tenth of that. The others share one.
	MaxMeters int `yaml:"max_meters,omitempty" jsonschema:"minimum=10,maximum=1048576"`
	// How long a ticket lives that is never closed.
	TTL Duration `yaml:"ttl,omitempty"`
	// How long the proxy holds a client's request before it answers 429.
	ClientDeadline Duration `yaml:"client_deadline,omitempty"`
	// How often the proxy sends a sign of life to a client whose stream it holds; as long as client_deadline and more: never.
	KeepAlive Duration `yaml:"keep_alive,omitempty"`
	// The traffic light on quotas that have to last until a reset.
	Light Light `yaml:"light,omitempty"`
	// Slows lower classes before a quota is gone.
	Breaker Breaker `yaml:"breaker,omitempty"`
	// How long everyone pauses after a 429.
	Backoff Backoff `yaml:"backoff,omitempty"`
	// The part of a quota that has to last which agents leave to a person at the keyboard.
	Reserve Percent `yaml:"reserve,omitempty"`
	// When a subscription's window is used up and the provider sells what is beyond it: lower classes go on, which is paid for (on), or wait for the reset (off). Off if it is not said.
	Overage Switch `yaml:"overage,omitempty"`
	// Count the provider's limits, and pause after refusals, for each API key apart.
	Split Split `yaml:"split,omitempty"`
	// With split: key or a limit per key, the environment variable that holds the key of commands such as sluice acquire.
	KeyEnv string `yaml:"key_env,omitempty"`
	// Several keys, or addresses, that requests can go with: each takes the first that can go.
	Keys []Key `yaml:"keys,omitempty"`
	// Put the key into requests, so that callers need none.
	Inject *Inject `yaml:"inject,omitempty"`
	// Keep requests that were given up, with their bodies, so that sluice dlq can send them again. Off if it is not said: bodies are private.
	DeadLetters Switch `yaml:"dead_letters,omitempty"`
	// When a client goes away: the place is free at once (free), or held for the usual time (hold). Without it the provider's.
	Abort Abort `yaml:"abort,omitempty"`
	// What the provider enforces, and what you want on top.
	Limits []Limit `yaml:"limits,omitempty"`
}

// Light is the traffic light on quotas that have to last until a reset.
type Light struct {
	Off bool `yaml:"-"`
	// Below it only the highest class proceeds.
	Green Percent `yaml:"green,omitempty"`
	// Below it only an emergency does.
	Red Percent `yaml:"red,omitempty"`
	// Where it binds: on quotas that have to last (stocks), or on every limit of the provider's (all).
	Bind Bind `yaml:"bind,omitempty"`
	// Thresholds shrink with the time left to the reset (shrink), or stay (static).
	Mode LightMode `yaml:"mode,omitempty"`
}

// Breaker foresees when a quota will be gone.
type Breaker struct {
	Off bool `yaml:"-"`
	// Trip if the quota will be gone by then, and before its reset.
	Within Duration `yaml:"within,omitempty"`
	// How many statements of what remains the forecast rests on.
	Samples int `yaml:"samples,omitempty" jsonschema:"minimum=3,maximum=64"`
	// Slow lower classes down (glide), or stop them (open).
	Mode BreakerMode `yaml:"mode,omitempty"`
}

// Backoff is how long everyone pauses after a 429.
type Backoff struct {
	// The first pause.
	Start Duration `yaml:"start,omitempty"`
	// How much longer each further one is.
	Factor int `yaml:"factor,omitempty" jsonschema:"minimum=1,maximum=100"`
	// The longest pause.
	Cap Duration `yaml:"cap,omitempty"`
}

// Inject is where the proxy puts a key, and where it has it from.
type Inject struct {
	// The header, such as x-api-key.
	Header string `yaml:"header,omitempty"`
	// The environment variable that holds the key.
	Env string `yaml:"env,omitempty"`
	// What stands before the key in the header, such as "Bearer ".
	Prefix string `yaml:"prefix,omitempty"`
}

// Key is one of several keys or addresses of a resource. Each has its own limits and pauses.
type Key struct {
	// The environment variable that holds the key.
	Env string `yaml:"env,omitempty"`
	// The address that requests with this key go to; without one it is the resource's.
	Upstream string `yaml:"upstream,omitempty"`
	// How much of the requests this key gets while several could go, compared with the others; 1 if it is not said.
	Share int `yaml:"share,omitempty" jsonschema:"minimum=1,maximum=1000"`
}

// Limit is one constraint on a resource.
type Limit struct {
	// Unique on its resource.
	Name string `yaml:"name,omitempty" jsonschema:"required"`
	// The amount per window: 80/min, 30/4s, 5000/h, 10000/day.
	Size Rate `yaml:"size,omitempty"`
	// When a charge comes back. Without it a limit with a burst is a bucket, one with concurrency a concurrency limit, any other rolling.
	Kind Kind `yaml:"kind,omitempty"`
	// How much of a bucket can be spent at once.
	Burst int64 `yaml:"burst,omitempty" jsonschema:"minimum=1,maximum=1099511627776"`
	// How many requests may be under way at the same time.
	Concurrency int64 `yaml:"concurrency,omitempty" jsonschema:"minimum=1,maximum=1099511627776"`
	// What is counted: requests, input_tokens, output_tokens, tokens, points, work, or any name.
	Unit string `yaml:"unit,omitempty"`
	// One limit of this size for each of these.
	Per []Scope `yaml:"per,omitempty"`
	// When a fixed window resets: a time of day and its zone.
	Resets TimeOfDay `yaml:"resets,omitempty"`
}
