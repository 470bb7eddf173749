package api

import (
	"context"
	"net/http"
	"slices"

	"github.com/sluicehq/sluice/internal/inside"
	"github.com/sluicehq/sluice/internal/keylabel"
)

// keyLabel returns the key label that a request to a resource counts under. Every label has limits of its own, so a
// caller that could invent labels could have any number of limits. Therefore it may name only a configured key. Where
// none is configured, it may name a key of its own if its token is not bound to an agent, a user or a class.
func (c *call) keyLabel(ctx context.Context, resource, label string) (string, error) {
	if label != "" && !keylabel.Is(label) { // it may be the key itself, by mistake: do not pass it on
		return "", &Problem{
			Status: http.StatusBadRequest, Detail: "key: this is not the label of a key, which has eight hexadecimal digits",
			Hint: "send the label that `sluice key NAME` prints for the key in the variable NAME, never the key itself",
		}
	}
	if !inside.Of(c.api.Gate).TellsKeys(resource) {
		return "", nil // a refusal counts for all callers of this resource
	}
	var known []string
	if c.api.Keys != nil {
		var err error
		if known, err = c.api.Keys(ctx, resource); err != nil {
			return "", err
		}
	}
	switch {
	case len(known) == 1 && label == "":
		return known[0], nil
	case slices.Contains(known, label):
	case len(known) > 0 && label == "":
		return "", &Problem{
			Status: http.StatusBadRequest, Detail: "key: this resource has several keys, and the request names none",
			Hint: "send the label that `sluice key NAME` prints for the key in the variable NAME",
		}
	case len(known) > 0:
		return "", &Problem{
			Status: http.StatusForbidden, Detail: "key: this is not the label of a key that the resource is configured with",
			Hint: "send the label that `sluice key NAME` prints for the variable that key_env or inject names",
		}
	case label != "" && label != keylabel.None && c.bound():
		return "", &Problem{
			Status: http.StatusForbidden, Detail: "key: a token that is bound to an agent, a user or a class may name configured keys only",
			Hint: "configure the key with key_env, leave \"key\" out, or use a token that is not bound",
		}
	}
	return label, nil
}

// bound reports whether the caller's token is bound to an agent, a user or a class.
func (c *call) bound() bool { return c.who.Agent != "" || c.who.User != "" || c.bounded() }
