package proxy

import (
	"cmp"
	"context"
	"log/slog"
	"net/http"
	"time"

	"github.com/sluicehq/sluice/sluicehttp"
)

// logged wraps done so that it also writes a line to the request log, if there is one.
func (p *Proxy) logged(done func(sluicehttp.Exchange)) func(sluicehttp.Exchange) {
	if p.requests == nil {
		return done
	}
	return func(ex sluicehttp.Exchange) {
		if done != nil {
			done(ex)
		}
		p.logExchange(&ex)
	}
}

// logExchange writes the line of a request that reached the gate. Unknown figures are left out.
func (p *Proxy) logExchange(ex *sluicehttp.Exchange) {
	status := ex.Status
	if status == 0 && ex.Err != nil && !ex.Aborted {
		status = refusalOf(ex.Err).status // the status that the client got
	}
	sends := ex.Attempts
	if ex.Free { // it takes no turn
		sends = 0
	}
	attrs := append(make([]slog.Attr, 0, 20),
		slog.String("request_id", ex.RequestID), slog.String("agent", ex.Agent), slog.String("class", cmp.Or(ex.Class, p.gate.Class(ex.Agent))),
		slog.String("resource", ex.Resource), slog.String("model", ex.Model), slog.Int64("wait_ms", ex.Waited.Milliseconds()), slog.Int("status", status),
		slog.Int64("took_ms", ex.Took.Milliseconds()), slog.Int("sends", sends))
	if ex.UpstreamID != "" {
		attrs = append(attrs, slog.String("upstream_id", ex.UpstreamID))
	}
	if u := &ex.Usage; u.Known {
		attrs = append(attrs, slog.Int64("input_tokens", u.Input+u.CacheRead+u.CacheWrite+u.CacheLong), slog.Int64("output_tokens", u.Output))
	}
	if ex.Micros > 0 || ex.Priced {
		attrs = append(attrs, slog.Float64("usd", float64(ex.Micros)/1e6))
		if !ex.Priced || !ex.Usage.Known {
			attrs = append(attrs, slog.Bool("usd_guessed", true))
		}
	}
	if ex.User != "" {
		attrs = append(attrs, slog.String("user", ex.User))
	}
	if ex.Tool != "" {
		attrs = append(attrs, slog.String("tool", ex.Tool))
	}
	if ex.Retry {
		attrs = append(attrs, slog.Bool("retry", true))
	}
	if ex.Free {
		attrs = append(attrs, slog.Bool("free", true))
	}
	if ex.Aborted {
		attrs = append(attrs, slog.Bool("aborted", true))
	}
	if ex.Err != nil && !ex.Aborted {
		attrs = append(attrs, slog.String("error", refusalOf(ex.Err).message))
	}
	p.requests.LogAttrs(context.Background(), slog.LevelInfo, "request", attrs...)
}

// logDenied writes the line of a request that was refused before it reached the gate.
func (p *Proxy) logDenied(r *http.Request, id, resource string, f *refusal) {
	if p.requests == nil {
		return
	}
	p.requests.LogAttrs(context.Background(), slog.LevelInfo, "request",
		slog.String("request_id", id), slog.String("agent", r.Header.Get(headerAgent)), slog.String("class", r.Header.Get(headerClass)), slog.String("resource", resource), slog.String("model", ""),
		slog.Int64("wait_ms", 0), slog.Int("status", f.status), slog.Int64("took_ms", 0), slog.Int("sends", 0), slog.String("error", f.message))
}

// logPassed writes the line of a request that another gate of the same store has let through and counts.
func (p *Proxy) logPassed(resource string, caller *sluicehttp.Caller, began time.Time, resp *http.Response) {
	if p.requests == nil || resp == nil {
		return
	}
	p.requests.LogAttrs(context.Background(), slog.LevelInfo, "request",
		slog.String("request_id", caller.RequestID), slog.String("agent", caller.Agent), slog.String("class", caller.Class), slog.String("resource", resource), slog.String("model", ""),
		slog.Int64("wait_ms", 0), slog.Int("status", resp.StatusCode), slog.Int64("took_ms", time.Since(began).Milliseconds()), slog.Int("sends", 1), slog.Bool("passed_before", true))
}
