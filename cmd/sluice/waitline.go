package main

import (
	"context"
	"fmt"
	"io"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/sluicehq/sluice"
)

// showWaiting shows what a request waits for, if that takes longer than a moment.
func (s *session) showWaiting(ctx context.Context, w io.Writer, req sluice.Request) (stop func()) {
	return showLine(ctx, w, quiet, func(ctx context.Context) string { return "waiting for " + req.Resource + s.whyWaiting(ctx, req) })
}

// whyWaiting describes how many are ahead, what holds the request, and when it is expected to go.
func (s *session) whyWaiting(ctx context.Context, req sluice.Request) string {
	list, err := s.gate.Why(ctx, req.Resource)
	if err != nil {
		return s.whyCutOff(ctx, req.Resource)
	}
	for _, w := range list {
		if !w.Own {
			continue
		}
		var b strings.Builder
		if w.Position > 1 {
			fmt.Fprintf(&b, ", %d ahead", w.Position-1)
		}
		fmt.Fprintf(&b, ": %s", w.Reason)
		if w.Limit != "" {
			fmt.Fprintf(&b, " %q", w.Limit)
		}
		if len(w.HeldBy) > 0 {
			fmt.Fprintf(&b, " held by %s", strings.Join(w.HeldBy[:min(len(w.HeldBy), 3)], ", "))
		}
		if w.HeldUntil != nil {
			fmt.Fprintf(&b, " for at most %s", max(time.Until(*w.HeldUntil), 0).Round(time.Second))
		}
		if w.ExpectedAt != nil {
			fmt.Fprintf(&b, ", expected in %s", max(time.Until(*w.ExpectedAt), 0).Round(time.Second))
		}
		return b.String()
	}
	return ""
}

// whyCutOff says that the store is unreachable, if it is.
func (s *session) whyCutOff(ctx context.Context, resource string) string {
	st, err := s.gate.Resource(ctx, resource)
	if err != nil || st.Outage == nil {
		return ""
	}
	return ": the store cannot be reached (" + st.Outage.Why + "); it " + st.Outage.Meanwhile
}

// clip cuts a line that is overwritten to the usual width of a terminal, because a wrapped line could not be cleared.
func clip(s string) string {
	const width = 79
	s = strings.Map(func(r rune) rune {
		if r == '\n' || r == '\t' {
			return ' '
		}
		return r
	}, s)
	if utf8.RuneCountInString(s) <= width {
		return s
	}
	return string([]rune(s)[:width-1]) + "…"
}
