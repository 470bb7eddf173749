package sim

import (
	"fmt"
	"time"

	"github.com/sluicehq/sluice/store"
)

// Units that a [Limit] can count.
const (
	Requests     = "requests"
	Content      = "content"       // requests that create content for others to see
	Points       = "points"        // 1 for a read request, 5 for a write request
	InputTokens  = "input_tokens"  // counted on arrival
	OutputTokens = "output_tokens" // counted while they are produced
	Tokens       = "tokens"        // both, counted on arrival
)

// Units lists all units.
var Units = []string{Requests, Content, Points, InputTokens, OutputTokens, Tokens}

// Limit is one published limit of a provider.
type Limit struct {
	Name   string
	Kind   store.Kind
	Unit   string
	Size   int64         // per Window; number of places of a concurrency limit
	Burst  int64         // capacity of a bucket
	Window time.Duration // of all kinds except concurrency
	Phase  time.Duration // of a fixed window: time from Epoch to its first reset
	// PerModel counts each model separately.
	PerModel bool
	// Hidden limits are enforced but not stated in headers.
	Hidden bool
	// Plan makes it a window of a subscription, whose headers state used quota only in whole percent.
	Plan bool
}

// Rule returns a fresh rule that enforces the limit.
func (l Limit) Rule() Rule {
	switch l.Kind {
	case store.Bucket:
		return NewBucket(l.Burst, l.Size, l.Window)
	case store.Rolling:
		return NewRolling(l.Size, l.Window)
	case store.Fixed:
		return NewFixed(l.Size, l.Window, Epoch.Add(l.Phase))
	case store.Concurrency:
		return NewConcurrency(l.Size)
	}
	panic(fmt.Sprintf("sim: limit %s has no kind", l.Name))
}

// late reports whether the limit counts output while it is produced.
func (l Limit) late() bool { return l.Unit == OutputTokens }

// tokens reports whether the limit counts tokens, whose number is only known at the end of the response.
func (l Limit) tokens() bool {
	return l.Unit == InputTokens || l.Unit == OutputTokens || l.Unit == Tokens
}

// Request is one call as the provider sees it.
type Request struct {
	Agent string
	Model string
	// Write marks requests that change something. Create marks write requests that GitHub calls content-creating.
	Write, Create bool
	Input, Output int64 // tokens
	// Estimate is what the provider assumes as Input on arrival; 0: Input itself.
	Estimate int64
}

// cost returns what r takes from l on arrival.
func (r *Request) cost(l *Limit) int64 {
	switch l.Unit {
	case Requests:
		return 1
	case Content:
		if r.Create {
			return 1
		}
		return 0
	case Points:
		if r.Write {
			return 5
		}
		return 1
	case InputTokens:
		if r.Estimate > 0 {
			return r.Estimate
		}
		return r.Input
	case Tokens:
		return r.Input + r.Output
	}
	return 0
}
