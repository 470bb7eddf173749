package sluice

import (
	"fmt"
	"net/http"
	"strconv"

	"github.com/sluicehq/sluice/inspect"
	"github.com/sluicehq/sluice/internal/keylabel"
	"github.com/sluicehq/sluice/store"
)

// rejects reports whether a response says that the request itself is wrong, such as 404. The quota let it pass, and the
// account is in order.
func (a *Answer) rejects() bool {
	return a.Status >= 400 && inspect.Rejects(a.Status, a.Verdict.String())
}

// rejection says what is known about why the provider rejects a request; empty if nothing is.
func (r *resource) rejection(req *Request, a *Answer) string {
	if a.Verdict == store.VerdictOK && a.Cause != "" {
		return a.Cause
	}
	label := r.keyOf(req)
	switch {
	case label == "" || a.Status != http.StatusUnauthorized && a.Status != http.StatusForbidden:
		return ""
	case label == keylabel.None:
		return "the requests have no API key"
	}
	return "the provider refuses key " + label
}

// rejecting returns the counts to show if the provider rejects most requests: those of the whole resource, or of a model.
// Otherwise it returns nil.
func rejecting(list []store.Rejections, now store.Time) *store.Rejections {
	for i := range list {
		x := &list[i]
		if x.Rejected < failingFrom || 2*x.Rejected <= x.Answers || now.Sub(x.Last) >= idleAfter {
			continue
		}
		if i == 0 {
			return blamed(list)
		}
		return x
	}
	return nil
}

// rejectedReason says what the provider answers, how often, and why if that is known.
func rejectedReason(x *store.Rejections) string {
	answered := statusText(x.Status)
	if x.Mixed {
		answered = "with errors, the last " + answered
	}
	reason := fmt.Sprintf("%d of %d answered %s", x.Rejected, x.Answers, answered)
	if x.Model != "" {
		reason = "model " + x.Model + ": " + reason
	}
	if x.Cause != "" {
		reason += ": " + x.Cause
	}
	return reason
}

// blamed returns the model that all rejections are about, if requests for others were answered too. Otherwise it returns
// the first of list, which counts all requests.
func blamed(list []store.Rejections) *store.Rejections {
	if all := &list[0]; len(list) == 2 && list[1].Rejected == all.Rejected && list[1].Answers < all.Answers {
		return &list[1]
	}
	return &list[0]
}

// statusText returns a status and its name, such as 404 Not Found.
func statusText(status int) string {
	text := strconv.Itoa(status)
	if name := http.StatusText(status); name != "" {
		text += " " + name
	}
	return text
}
