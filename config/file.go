package config

// The comments of these types are the descriptions in schema.json: after changing one, run
// go generate.

// File is a configuration file. The zero value of a field means that the file does not
// state it; [Parse] and [Load] fill in the defaults.
type File struct {
	// Where state lives: mem: (this process), file: or file:PATH (this machine), redis://HOST:PORT and the like (many machines; docs/redis.md), http://HOST:PORT (a daemon).
	Store string `yaml:"store,omitempty"`
	// What a process does while it cannot reach the store: continue within its share, so that the fleet keeps the limits (share), hold every request (closed), or let every request go and count nothing (open).
	OnStoreFailure StoreFailure `yaml:"on_store_failure,omitempty"`
	// Where the daemon listens: HOST:PORT, or unix:PATH.
	Listen string `yaml:"listen,omitempty"`
	// The certificate that the daemon shows when it listens on HOST:PORT; without one it speaks plain HTTP.
	TLS TLS `yaml:"tls,omitempty"`
	// A file or directory of certificates, in PEM, that the gate trusts at providers and at proxies on the way, besides those of the system and those that variables such as SSL_CERT_FILE name. It is read at the start and by a reload.
	UpstreamCA string `yaml:"upstream_ca,omitempty"`
	// The APIs whose quota is shared, by name.
	Resources map[string]Resource `yaml:"resources,omitempty"`
	// Known providers can be used under their own names without an entry in resources. Off allows only the resources above.
	Presets Switch `yaml:"presets,omitempty"`
	// Whether sluice run intercepts calls of a command: of clients that need it (auto), of every command (on), or never (off). --intercept and --no-intercept override it.
	Intercept Interception `yaml:"intercept,omitempty"`
	// A directory with a YAML file for each client of one's own, in addition to the built-in ones. It is relative to this file.
	Clients string `yaml:"clients,omitempty"`
	// Which request is next: classes by share (fair), a higher class always first (strict), or first come, first served (fifo).
	Order Order `yaml:"order,omitempty"`
	// The priority classes, highest first.
	Classes Classes `yaml:"classes,omitempty"`
	// On quotas that have to last until a reset, a class keeps its unused share reserved while one of its agents is alive.
	Shares Switch `yaml:"shares,omitempty"`
	// On rolling windows, lower classes spread their use evenly while an agent of the highest class is alive.
	Pacing Switch `yaml:"pacing,omitempty"`
	// Agents that wait for a limited agent are told to start no new work.
	Cascade Switch `yaml:"cascade,omitempty"`
	// How long an agent counts as alive without a heartbeat.
	Leases Leases `yaml:"leases,omitempty"`
	// How many agents a user may run at the same time.
	Slots Slots `yaml:"slots,omitempty"`
	// How long a retry waits, by class: from and to. Classes without one use the full jitter of retry.
	RetryWindows map[string]Window `yaml:"retry_windows,omitempty"`
	// The callers known by name; * stands for all others.
	Agents map[string]Agent `yaml:"agents,omitempty"`
	// Limits in dollars.
	Budgets []Budget `yaml:"budgets,omitempty"`
	// What each tool costs in the unit work; a tool that is not listed costs 1.
	Tools map[string]int64 `yaml:"tools,omitempty"`
	// For each kind of task the models that can do it, as RESOURCE/MODEL, best first.
	Routes map[string][]string `yaml:"routes,omitempty"`
	// How often and how long a caller retries.
	Retry Retry `yaml:"retry,omitempty"`
	// How dead letters are kept.
	DeadLetters DeadLetters `yaml:"dead_letters,omitempty"`
	// What models cost, in dollars per million tokens. They overrule the prices that come with a provider. The entry "file" is the path of a
	// file of prices in the JSON format of LiteLLM's price map; it is read again when it changes.
	Prices map[string]Price `yaml:"prices,omitempty"`
	// Where to send alerts when something needs a person.
	Alerts Alerts `yaml:"alerts,omitempty"`
	// Who may call the daemon, and as which agent or user.
	Tokens []Token `yaml:"tokens,omitempty"`

	dir     string            // of the file; empty if it was not loaded from one
	added   map[string]bool   // resources that AddPresets added
	sources map[string]source // by path: values with variables in them
	ca      *ParseError       // where upstream_ca is, for errors; nil if no file was parsed
}

// source holds a value as the file writes it, and the text after its variables were replaced.
type source struct{ written, text string }

// Classes are the priority classes, highest first.
type Classes []Class

// Class is a priority class.
type Class struct {
	Name string `yaml:"-"`
	// The part that the class gets when all classes want more than there is; other classes use what it leaves.
	Share Percent `yaml:"share,omitempty"`
}

// Append adds a class. Together with Entry and Len it preserves the order of the file.
func (c *Classes) Append(name string) any {
	*c = append(*c, Class{Name: name})
	return &(*c)[len(*c)-1]
}

// Entry returns the name of a class and the class.
func (c *Classes) Entry(i int) (name string, class any) { return (*c)[i].Name, (*c)[i] }

// Len returns the number of classes.
func (c *Classes) Len() int { return len(*c) }

func (c Classes) has(name string) bool {
	for i := range c {
		if c[i].Name == name {
			return true
		}
	}
	return false
}

// Leases configures how long an agent counts as alive without a heartbeat.
type Leases struct {
	Off bool `yaml:"-"`
	// The time between two heartbeats.
	Renew Duration `yaml:"renew,omitempty"`
	// An agent without a heartbeat for this long is gone; its share and slots go to others.
	Expire Duration `yaml:"expire,omitempty"`
}

// DeadLetters configures how commands and requests that were given up are kept.
type DeadLetters struct {
	// The environment variable with the key that encrypts them: 32 bytes, as hexadecimal digits or as base64. Without it they are not encrypted.
	KeyEnv string `yaml:"key_env,omitempty"`
	// The largest body to keep, in bytes; 1048576 by default.
	MaxBody int64 `yaml:"max_body,omitempty" jsonschema:"minimum=1,maximum=8388608"`
}

// Slots limits how many agents a user may run at the same time.
type Slots struct {
	Off bool `yaml:"-"`
	// Whose agents are counted together.
	Per SlotOwner `yaml:"per,omitempty"`
	// The number of agents.
	Max int `yaml:"max,omitempty" jsonschema:"minimum=1,maximum=1048576"`
	// How long a slot is kept without a heartbeat.
	TTL Duration `yaml:"ttl,omitempty"`
}

// Agent is a caller known by name.
type Agent struct {
	// Its class. Without one it queues in the last class and retries with full jitter.
	Class string `yaml:"class,omitempty"`
	// The user that the agent belongs to.
	User string `yaml:"user,omitempty"`
	// How much it may spend.
	Budget Money `yaml:"budget,omitempty"`
	// The agents whose work this one depends on.
	WaitsFor []string `yaml:"waits_for,omitempty"`
}

// Budget is a limit in dollars.
type Budget struct {
	// What to call it in messages.
	Name string `yaml:"name,omitempty"`
	// One budget for each agent, one for each user, or one for all.
	Per BudgetOwner `yaml:"per,omitempty"`
	// How much: 10 usd/day, 100 usd/month, or 500 usd in total.
	Size Money `yaml:"size,omitempty"`
	// What happens when the budget is used up: deny, downgrade the priority, reroute to a cheaper model, or only alert. slow spreads what is left until the reset.
	Over Over `yaml:"over,omitempty"`
}

// Retry configures how often and how long a caller retries.
type Retry struct {
	// How often one request is sent at most, the first attempt included.
	Attempts int `yaml:"attempts,omitempty" jsonschema:"minimum=1,maximum=1000"`
	// How long all attempts together may take.
	Deadline Duration `yaml:"deadline,omitempty"`
	// The longest wait before the first retry; it doubles with each further retry.
	Base Duration `yaml:"base,omitempty"`
	// The longest wait before any retry.
	Cap Duration `yaml:"cap,omitempty"`
}

// Price is the price of a model, in dollars per million tokens. The entry "file" holds the path of a price file
// instead.
type Price struct {
	// The price of input tokens.
	Input *float64 `yaml:"input,omitempty" jsonschema:"minimum=0,maximum=1000000,required"`
	// The price of output tokens.
	Output *float64 `yaml:"output,omitempty" jsonschema:"minimum=0,maximum=1000000,required"`
	// The price of input tokens read from a cache; the price of input by default.
	CacheRead *float64 `yaml:"cache_read,omitempty" jsonschema:"minimum=0,maximum=1000000"`
	// The price of input tokens written to a cache; the price of input by default.
	CacheWrite *float64 `yaml:"cache_write,omitempty" jsonschema:"minimum=0,maximum=1000000"`

	// path is the path of the price file, for the entry "file".
	path string
}

// priceFile is the key of the entry of prices that holds the path of a price file.
const priceFile = "file"

// UnmarshalText reads the path of a price file instead of the fields.
func (p *Price) UnmarshalText(text []byte) error {
	p.path = string(text)
	return nil
}

// MarshalText returns the path of the price file, empty for a price.
func (p Price) MarshalText() ([]byte, error) { return []byte(p.path), nil }

// TLS names the files of a certificate and its key.
type TLS struct {
	// A file with the certificate and its intermediate certificates, in PEM. It is read again when it changes.
	Cert string `yaml:"cert,omitempty"`
	// A file with the certificate's private key, in PEM.
	Key string `yaml:"key,omitempty"`
}

// Alerts configures where alerts go when something needs a person.
type Alerts struct {
	// The URL that alerts are posted to. If it holds a secret, write it as a variable.
	Webhook string `yaml:"webhook,omitempty"`
}

// Token lets its bearer call the daemon.
type Token struct {
	// What to call it in messages.
	Name string `yaml:"name,omitempty"`
	// The token's SHA-256 in hexadecimal; never the token itself.
	Hash string `yaml:"hash,omitempty"`
	// The agent that the bearer acts as; without one the bearer states it.
	Agent string `yaml:"agent,omitempty"`
	// The user that the bearer belongs to; without one the bearer states it, or the configuration of its agent does.
	User string `yaml:"user,omitempty"`
	// The highest class that the bearer may use.
	Class string `yaml:"class,omitempty"`
}
