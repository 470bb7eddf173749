package inspect

import "time"

// Kinds of [Event].
const (
	EventSend      = "send"       // a request was let through
	EventCancel    = "cancel"     // a ticket was given back unsent
	EventAnswer    = "answer"     // the provider answered it
	EventUsage     = "usage"      // actual usage, known when the request was over
	EventThrottled = "throttled"  // a refusal by the provider; it has an answer event as well
	EventPause     = "pause"      // all requests are held from now on
	EventResume    = "resume"     // a pause was ended by hand
	EventRefused   = "refused"    // a request was not let through
	EventAbandoned = "abandoned"  // a caller gave up waiting for its turn
	EventWouldWait = "would_wait" // mode observe: the request went through, but the gate would have held it
	EventLeaseLost = "lease_lost" // an agent's heartbeat was refused or not heard
	EventTakenOver = "taken_over" // another machine now holds an agent's lease
	EventStoreLost = "store_lost" // the store cannot be reached
	EventStoreBack = "store_back" // the store can be reached again
	EventLogFault  = "log_fault"  // something went wrong with the log that processes share, and the store has dealt with it; reason says what
	EventDropped   = "dropped"    // events were lost: more came than could be written
	EventBudget    = "budget"     // a budget is used up

	EventBudgetBack = "budget_back" // a used-up budget starts again
	EventLeaseBack  = "lease_back"  // an agent's heartbeats are accepted again

	EventUpstream      = "upstream_error"      // a request got no response; reason is dns, refused, connect, tls, reset, timeout or other
	EventLetter        = "dead_letter"         // a request was given up and kept; reason says why, error that it could not be kept
	EventLetterDropped = "dead_letter_dropped" // old dead letters made room for newer ones; count says how many

	EventKeyAside = "key_set_aside" // the provider refuses an API key or wants payment for it; the ring's other keys continue

	EventPastGate = "past_gate" // connections of a command went past the gate: count to host; without a host, a command's calls are watched

	EventState  = "state"  // a resource changed its state
	EventAdvice = "advice" // refusals call for another setting; count says how many in 7 days, reason what to change
)

// ModeObserve is the mode of a resource that holds no request.
const ModeObserve = "observe"

// Event is one thing that happened at a gate. It holds names, numbers and times, never API keys and nothing from the
// content of requests or responses. docs/events.md describes every field.
type Event struct {
	Time     time.Time `json:"time"`
	Kind     string    `json:"event"`
	Resource string    `json:"resource,omitempty"`
	Ticket   string    `json:"ticket,omitempty"`
	Agent    string    `json:"agent,omitempty"`
	User     string    `json:"user,omitempty"`
	Class    string    `json:"class,omitempty"`
	Model    string    `json:"model,omitempty"`
	// Requested is the model name that the client sent. It is empty if that equals Model, the class.
	Requested string `json:"requested,omitempty"`
	Tool      string `json:"tool,omitempty"`
	// Units are the charges of a send, or for an answer the actual usage.
	Units    map[string]int64 `json:"units,omitempty"`
	Retry    bool             `json:"retry,omitempty"`
	WaitedMS int64            `json:"waited_ms,omitempty"`
	// Observed is set if the store does not know the request: it was sent without a ticket, or in mode observe while
	// the store could not be reached.
	Observed bool `json:"observed,omitempty"`
	// Unpriced is set if the dollars of a send are based on the default price for unknown models.
	Unpriced bool `json:"unpriced,omitempty"`

	// For a change of state: State is the new state, one of [States], and Was the old one. Reason says why, Until when
	// the new state is expected to end, and ForMS how long the old one lasted.
	State string `json:"state,omitempty"`
	Was   string `json:"was,omitempty"`

	Status  int    `json:"status,omitempty"` // HTTP status
	Verdict string `json:"verdict,omitempty"`

	// Why a request was held or refused: the limit, how much of its size was used, and when to try again.
	// If the reason is that the request would wait beyond its deadline, or that too many wait, Behind is what it would
	// have waited for.
	// An answer that rejects a request as wrong has in Reason what is known about it.
	Reason  string     `json:"reason,omitempty"`
	Behind  string     `json:"behind,omitempty"`
	Limit   string     `json:"limit,omitempty"`
	Used    int64      `json:"used,omitempty"`
	Size    int64      `json:"size,omitempty"`
	RetryAt *time.Time `json:"retry_at,omitempty"`

	// For a pause: Scope is what it covers (empty: the whole resource), Consecutive counts the refusals in a row that
	// led to it, and ForMS is its length.
	Scope       string     `json:"scope,omitempty"`
	Consecutive int        `json:"consecutive,omitempty"`
	ForMS       int64      `json:"for_ms,omitempty"` // also for store_back: how long the store was unreachable
	Until       *time.Time `json:"until,omitempty"`

	// For a lease that was taken over: the agent's new and old machine.
	Machine     string `json:"machine,omitempty"`
	FromMachine string `json:"from_machine,omitempty"`

	// For store_lost and store_back: what this process does while the store is unreachable. For other events of a resource
	// in mode observe: [ModeObserve].
	Mode string `json:"mode,omitempty"`

	// Host is where connections past the gate went.
	Host string `json:"host,omitempty"`

	// For a fault of the log: Position is where in the log, and Writer names the process that wrote the entry there. Tickets
	// of that process begin with it.
	Position string `json:"position,omitempty"`
	Writer   string `json:"writer,omitempty"`

	Count int64  `json:"count,omitempty"` // dropped events, requests granted without the store, or connections past the gate
	Error string `json:"error,omitempty"` // why a lease or the store was lost, or the log has a fault

	// Process identifies the process that wrote a line of the event log, and Store the store of its gate. Both are set
	// only in the log.
	Process string `json:"process,omitempty"`
	Store   string `json:"store,omitempty"`
}

// Rejects reports whether an answer with a status and a verdict says that the request itself is wrong, such as 404. It is
// false for answers about the quota or the account.
func Rejects(status int, verdict string) bool {
	return status >= 400 && status < 500 && status != 429 && (verdict == "ok" || verdict == "error")
}
