package inspect

import "time"

// What an [Event] tells of.
const (
	EventSend      = "send"       // a request was let through
	EventCancel    = "cancel"     // and was given back unsent
	EventAnswer    = "answer"     // the provider answered it
	EventUsage     = "usage"      // what it really used, told when it was over
	EventThrottled = "throttled"  // with a refusal; the answer event is there as well
	EventPause     = "pause"      // everyone is held from now on
	EventResume    = "resume"     // a pause was ended by hand
	EventRefused   = "refused"    // a request was not let through
	EventWouldWait = "would_wait" // in the mode observe: it was let through, and would not have been
	EventLeaseLost = "lease_lost" // an agent's heartbeat was refused or not heard
	EventTakenOver = "taken_over" // another machine has an agent's lease from now on
	EventStoreLost = "store_lost" // the store cannot be reached
	EventStoreBack = "store_back" // and now it can again
	EventDropped   = "dropped"    // events were lost: more came than could be written
	EventBudget    = "budget"     // one is used up

	EventBudgetBack = "budget_back" // a budget that was used up begins anew
	EventLeaseBack  = "lease_back"  // the heartbeats of an agent are heard again

	EventUpstream      = "upstream_error"      // a request got no answer; reason is the kind: dns, refused, connect, tls, reset, timeout or other
	EventLetter        = "dead_letter"         // a request was given up and is kept; reason says why, error that it could not be kept
	EventLetterDropped = "dead_letter_dropped" // dead letters had to make room for newer ones; count says how many

	EventKeyAside = "key_set_aside" // the provider refuses an API key, or wants money for it: the other keys of its ring go on

	EventState = "state" // a resource is in another state from now on
)

// Event is one thing that happened at a gate. It holds names, numbers and times, and nothing of
// a request or an answer; keys are no part of it. docs/events.md describes every field.
type Event struct {
	Time     time.Time `json:"time"`
	Kind     string    `json:"event"`
	Resource string    `json:"resource,omitempty"`
	Ticket   string    `json:"ticket,omitempty"`
	Agent    string    `json:"agent,omitempty"`
	User     string    `json:"user,omitempty"`
	Class    string    `json:"class,omitempty"`
	Model    string    `json:"model,omitempty"`
	// Requested is the model's name as the client wrote it, where Model is its class and another.
	Requested string `json:"requested,omitempty"`
	Tool      string `json:"tool,omitempty"`
	// Units are what a send was charged, or with an answer what it really used.
	Units    map[string]int64 `json:"units,omitempty"`
	Retry    bool             `json:"retry,omitempty"`
	WaitedMS int64            `json:"waited_ms,omitempty"`
	// Observed tells that the store knows nothing of the request: it was sent without a ticket, or
	// in the mode observe while the store could not be reached.
	Observed bool `json:"observed,omitempty"`
	// Unpriced tells that the dollars of a send were reckoned with the price of models that nobody knows.
	Unpriced bool `json:"unpriced,omitempty"`

	// Of a change of state: what it is now, one of [States], and what it was. Reason says why, Until when it is expected to
	// end, and ForMS how long the state before lasted.
	State string `json:"state,omitempty"`
	Was   string `json:"was,omitempty"`

	Status  int    `json:"status,omitempty"` // of HTTP
	Verdict string `json:"verdict,omitempty"`

	// Why somebody was held or refused: by which limit, how much of it was used of how much, and
	// until when.
	Reason  string     `json:"reason,omitempty"`
	Limit   string     `json:"limit,omitempty"`
	Used    int64      `json:"used,omitempty"`
	Size    int64      `json:"size,omitempty"`
	RetryAt *time.Time `json:"retry_at,omitempty"`

	// Of a pause: what it covers (empty: all of the resource), the how manieth refusal in a row
	// it follows, and how long it lasts.
	Scope       string     `json:"scope,omitempty"`
	Consecutive int        `json:"consecutive,omitempty"`
	ForMS       int64      `json:"for_ms,omitempty"` // of a store that is back as well: how long it was out of reach
	Until       *time.Time `json:"until,omitempty"`

	// Of a lease that was taken over: where the agent is now, and where it was.
	Machine     string `json:"machine,omitempty"`
	FromMachine string `json:"from_machine,omitempty"`

	// Of a store that is lost or back: what this process does meanwhile.
	Mode string `json:"mode,omitempty"`

	Count int64  `json:"count,omitempty"` // of events that were dropped; of requests that were let go without the store
	Error string `json:"error,omitempty"` // why a lease, or the store, was lost

	// Process tells the lines of one process in the event log from those of another. Only the log has it.
	Process string `json:"process,omitempty"`
}
