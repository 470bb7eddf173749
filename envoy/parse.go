package envoy

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"

	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/envoy/ratelimit"
	"github.com/sluicehq/sluice/internal/inside"
	"github.com/sluicehq/sluice/internal/keylabel"
	"github.com/sluicehq/sluice/store"
)

// Bounds on a question.
const (
	maxDescriptors = 64
	maxEntries     = 64
)

// anyone is the agent of requests whose descriptors name none.
const anyone = "envoy"

// errQuestion is the error for descriptors that Sluice cannot read.
var errQuestion = errors.New("the descriptors cannot be understood")

func wrong(format string, args ...any) error {
	return fmt.Errorf("%w: %s", errQuestion, fmt.Sprintf(format, args...))
}

// part is what one descriptor says about the request.
type part struct {
	unit string // the unit of its hits
}

// parse reads the request that a question is about.
func parse(q *ratelimit.RateLimitRequest) (parts []part, req sluice.Request, err error) {
	req = sluice.Request{Resource: q.GetDomain(), Spent: true}
	switch list := q.GetDescriptors(); {
	case req.Resource == "":
		return nil, req, wrong("the domain is missing; it is the name of the resource")
	case len(list) == 0:
		return nil, req, wrong("there is none")
	case len(list) > maxDescriptors:
		return nil, req, wrong("there are %d, at most %d are allowed", len(list), maxDescriptors)
	}
	cost := map[string]int64{}
	for i, d := range q.GetDescriptors() {
		p, err := read(d, q.GetHitsAddend(), &req, cost)
		if err != nil {
			return nil, req, fmt.Errorf("descriptor %d: %w", i+1, err)
		}
		parts = append(parts, p)
	}
	for _, unit := range slices.Sorted(maps.Keys(cost)) {
		req.Cost = append(req.Cost, sluice.Amount{Unit: unit, N: cost[unit]})
	}
	req.Agent = cmp.Or(req.Agent, anyone)
	return parts, req, nil
}

// read adds one descriptor to the request and its cost.
func read(d *ratelimit.RateLimitDescriptor, hits uint32, req *sluice.Request, cost map[string]int64) (part, error) {
	p := part{unit: sluice.Requests}
	if n := len(d.GetEntries()); n > maxEntries {
		return p, wrong("it has %d entries, at most %d are allowed", n, maxEntries)
	}
	if d.GetIsNegativeHits() {
		return p, wrong("is_negative_hits: a charge cannot be given back this way")
	}
	if d.GetLimit() != nil {
		return p, wrong("limit: the limits of a resource are configured in Sluice, not in Envoy")
	}
	for _, e := range d.GetEntries() {
		name, value := e.GetKey(), e.GetValue()
		if field := fieldOf(req, name); field != nil {
			if *field != "" && *field != value {
				return p, wrong("two descriptors of one request state different values for %s", name)
			}
			*field = value
			continue
		}
		switch name {
		case "unit":
			p.unit = value
		case "tokens", sluice.OutputTokens, "input_tokens", sluice.Work:
			n, err := strconv.ParseUint(value, 10, 63)
			if err != nil || n > store.MaxAmount {
				return p, wrong("%s: %.80q is not an amount", name, value)
			}
			cost[name] = max(cost[name], int64(n))
		}
	}
	n := uint64(hits)
	if n == 0 { // like Envoy's reference service
		n = 1
	}
	if own := d.GetHitsAddend(); own != nil {
		n = own.GetValue()
	}
	if n > store.MaxAmount {
		return p, wrong("hits_addend: %d is more than the %d that can be counted", n, int64(store.MaxAmount))
	}
	if p.unit == "" {
		return p, wrong("unit: it is empty")
	}
	cost[p.unit] = max(cost[p.unit], int64(n))
	return p, nil
}

// fieldOf returns the field of a request that an entry sets, or nil if it sets none.
func fieldOf(req *sluice.Request, name string) *string {
	switch name {
	case "agent":
		return &req.Agent
	case "class":
		return &req.Class
	case "user":
		return &req.User
	case "model":
		return &req.Model
	case "tool":
		return &req.Tool
	case "key":
		return &req.Key
	}
	return nil
}

// label returns the label that a key counts under. Envoy may send the label, or the key itself, which is not stored.
func label(ctx context.Context, gate *sluice.Gate, req *sluice.Request) (string, error) {
	if req.Key == "" || !inside.Of(gate).TellsKeys(req.Resource) {
		return "", nil
	}
	if keylabel.Is(req.Key) {
		return req.Key, nil
	}
	return gate.KeyLabel(ctx, req.Key)
}
