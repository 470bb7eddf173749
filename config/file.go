package config

// The comments of these types are the descriptions in schema.json: after changing one, run
// go generate.

// File is a configuration file. The zero value of a field means that the file does not
// state it; [Parse] and [Load] fill in the defaults.
type File struct {
	// Where state lives: mem: (this process), file: or file:PATH (this machine), redis://HOST:PORT and the like (many machines; docs/redis.md), http://HOST:PORT (a daemon).
	Store string `yaml:"store,omitempty"`
	// What a process does while the store cannot be reached: go on within its share, so that all together keep to the limits (share), let nobody go (closed), or let everybody go and count nothing (open).
	OnStoreFailure StoreFailure `yaml:"on_store_failure,omitempty"`
	// Where the daemon listens: HOST:PORT, or unix:PATH.
	Listen string `yaml:"listen,omitempty"`
	// The certificate that the daemon shows where it listens on HOST:PORT; without one it speaks plain HTTP.
	TLS TLS `yaml:"tls,omitempty"`
	// The APIs whose quota is shared, by name.
	Resources map[string]Resource `yaml:"resources,omitempty"`
	// Providers that are known by themselves can be used under their own names, beside the resources above. Off leaves only those.
	Presets Switch `yaml:"presets,omitempty"`
	// Who is next: classes by share (fair), a higher class always first (strict), or first come, first served (fifo).
	Order Order `yaml:"order,omitempty"`
	// The priority classes, highest first.
	Classes Classes `yaml:"classes,omitempty"`
	// On quotas that have to last until a reset, classes leave each other's unused shares.
	Shares Switch `yaml:"shares,omitempty"`
	// On rolling windows, lower classes spread their use while an agent of the highest is alive.
	Pacing Switch `yaml:"pacing,omitempty"`
	// Agents that wait for one that is limited are told to start no new work.
	Cascade Switch `yaml:"cascade,omitempty"`
	// How long agents count as alive that are not heard of.
	Leases Leases `yaml:"leases,omitempty"`
	// How many agents a user may have at the same time.
	Slots Slots `yaml:"slots,omitempty"`
	// How long a retry waits, by class: from and to. Classes without one use the full jitter of retry.
	RetryWindows map[string]Window `yaml:"retry_windows,omitempty"`
	// The callers known by name; * stands for all others.
	Agents map[string]Agent `yaml:"agents,omitempty"`
	// Limits in dollars.
	Budgets []Budget `yaml:"budgets,omitempty"`
	// What each tool costs in the unit work; those not named cost 1.
	Tools map[string]int64 `yaml:"tools,omitempty"`
	// For each kind of task the models that can do it, as RESOURCE/MODEL, best first.
	Routes map[string][]string `yaml:"routes,omitempty"`
	// How patient a caller is that tries again.
	Retry Retry `yaml:"retry,omitempty"`
	// How dead letters are kept.
	DeadLetters DeadLetters `yaml:"dead_letters,omitempty"`
	// What models cost, in dollars per million tokens. They overrule the prices that come with a provider. The entry "file" is the path of a
	// file of prices in the JSON format of LiteLLM's price map; it is read again when it changes.
	Prices map[string]Price `yaml:"prices,omitempty"`
	// Who is told when something needs a person.
	Alerts Alerts `yaml:"alerts,omitempty"`
	// Who may call the daemon, and as whom.
	Tokens []Token `yaml:"tokens,omitempty"`

	added   map[string]bool   // resources that are not in the file
	sources map[string]source // of values with variables in them, by path
}

// source is how a value stands in the file, and the text it came to mean.
type source struct{ written, text string }

// Classes are the priority classes, highest first.
type Classes []Class

// Class is a priority class.
type Class struct {
	Name string `yaml:"-"`
	// What the class gets when all want more than there is; what it leaves, others use.
	Share Percent `yaml:"share,omitempty"`
}

// Append adds a class; with Entry and Len it makes the order of the file count.
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

// Leases are how long agents count as alive that are not heard of.
type Leases struct {
	Off bool `yaml:"-"`
	// Between two heartbeats.
	Renew Duration `yaml:"renew,omitempty"`
	// Without a heartbeat; then its share and slots go to others.
	Expire Duration `yaml:"expire,omitempty"`
}

// DeadLetters is how commands and requests are kept that were given up.
type DeadLetters struct {
	// The environment variable with the key that they are encrypted with: 32 bytes, as hexadecimal digits or as base64. Without it they are not encrypted.
	KeyEnv string `yaml:"key_env,omitempty"`
	// How many bytes a body may have to be kept; without it 1048576.
	MaxBody int64 `yaml:"max_body,omitempty" jsonschema:"minimum=1,maximum=8388608"`
}

// Slots are how many agents a user may have at the same time.
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
	// Whose agent it is.
	User string `yaml:"user,omitempty"`
	// What it may spend.
	Budget Money `yaml:"budget,omitempty"`
	// The agents whose work this one's depends on.
	WaitsFor []string `yaml:"waits_for,omitempty"`
}

// Budget is a limit in dollars.
type Budget struct {
	// What to call it in messages.
	Name string `yaml:"name,omitempty"`
	// One for each agent, for each user, or one for all.
	Per BudgetOwner `yaml:"per,omitempty"`
	// How much: 10 usd/day, 100 usd/month, or 500 usd in total.
	Size Money `yaml:"size,omitempty"`
	// Past it: deny, downgrade the priority, reroute to a cheaper model, or only alert. slow spreads what is left until the reset.
	Over Over `yaml:"over,omitempty"`
}

// Retry is how patient a caller is that tries again.
type Retry struct {
	// Sends of one request, the first included.
	Attempts int `yaml:"attempts,omitempty" jsonschema:"minimum=1,maximum=1000"`
	// How long the whole may take.
	Deadline Duration `yaml:"deadline,omitempty"`
	// The longest wait before the first retry; it doubles with each.
	Base Duration `yaml:"base,omitempty"`
	// The longest wait before any retry.
	Cap Duration `yaml:"cap,omitempty"`
}

// Price is what a model costs, in dollars per million tokens. In place of one, file names a file of prices.
type Price struct {
	// Of input.
	Input *float64 `yaml:"input,omitempty" jsonschema:"minimum=0,maximum=1000000,required"`
	// Of output.
	Output *float64 `yaml:"output,omitempty" jsonschema:"minimum=0,maximum=1000000,required"`
	// Of input read from a cache; as input if it is not stated.
	CacheRead *float64 `yaml:"cache_read,omitempty" jsonschema:"minimum=0,maximum=1000000"`
	// Of input written to a cache; as input if it is not stated.
	CacheWrite *float64 `yaml:"cache_write,omitempty" jsonschema:"minimum=0,maximum=1000000"`

	// path is that of the entry called file.
	path string
}

// priceFile is the entry of prices that is the path of a file, and no model.
const priceFile = "file"

// UnmarshalText reads the path of a file of prices in the place of the fields.
func (p *Price) UnmarshalText(text []byte) error {
	p.path = string(text)
	return nil
}

// MarshalText is the path, empty for a price.
func (p Price) MarshalText() ([]byte, error) { return []byte(p.path), nil }

// TLS is a certificate and its key.
type TLS struct {
	// A file with the certificate and those between it and the root, in PEM. It is read again when it changes.
	Cert string `yaml:"cert,omitempty"`
	// A file with the certificate's private key, in PEM.
	Key string `yaml:"key,omitempty"`
}

// Alerts are told when something needs a person.
type Alerts struct {
	// A URL that alerts are posted to. Where it holds a secret, write it as a variable.
	Webhook string `yaml:"webhook,omitempty"`
}

// Token lets its bearer call the daemon.
type Token struct {
	// What to call it in messages.
	Name string `yaml:"name,omitempty"`
	// The token's SHA-256 in hexadecimal; never the token itself.
	Hash string `yaml:"hash,omitempty"`
	// The agent that its bearer is; without one the bearer says.
	Agent string `yaml:"agent,omitempty"`
	// The user that its bearer belongs to; without one the bearer says, or the configuration of its agent.
	User string `yaml:"user,omitempty"`
	// The highest class its bearer can be in.
	Class string `yaml:"class,omitempty"`
}
