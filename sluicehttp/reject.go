package sluicehttp

import (
	"net/http"
	"strings"

	"github.com/sluicehq/sluice/internal/keylabel"
	"github.com/sluicehq/sluice/store"
)

// explain sets the cause of an answer that rejects the request as wrong, as far as the transport knows more than the gate
// and the dialect.
func (f *flight) explain(o *outcome) {
	status := o.answer.Status
	if o.answer.Verdict != store.VerdictOK || status < 400 || status > 499 {
		return
	}
	if status == http.StatusUnauthorized || status == http.StatusForbidden {
		if f.ask.Key == "" && f.t.speaker != nil && o.answer.Cause == "" { // otherwise the gate knows the label
			o.answer.Cause = f.refusedKey()
		}
		return
	}
	if o.answer.Cause != "" || status != http.StatusNotFound && status != http.StatusMethodNotAllowed && status != http.StatusBadRequest {
		return // the answer names the cause, or it is about the request and not about its path
	}
	if part := f.doubled(); part != "" {
		o.answer.Cause = "the path has " + part + " twice, because upstream ends with it and clients send it too; remove it from upstream"
	}
}

// refusedKey names the key of a request whose resource does not tell keys apart; empty if the label is not known.
func (f *flight) refusedKey() string {
	key := f.t.speaker.Key(f.header)
	if key == "" {
		return "the requests have no API key"
	}
	label, err := f.t.Gate.KeyLabel(f.ctx, key)
	if err != nil || label == keylabel.None {
		return ""
	}
	return "the provider refuses key " + label
}

// doubled returns the end of the upstream's path that the path of the request repeats, such as /v1.
func (f *flight) doubled() string {
	upstream := f.t.Upstream
	if f.key != nil && f.key.Upstream != nil {
		upstream = f.key.Upstream
	}
	if f.t.Upstream == nil {
		return ""
	}
	rest, ok := strings.CutPrefix(f.origin.URL.EscapedPath(), strings.TrimSuffix(f.t.Upstream.EscapedPath(), "/"))
	base := strings.TrimSuffix(upstream.EscapedPath(), "/")
	for i := 0; ok && i < len(base); i++ {
		if part := base[i:]; part[0] == '/' && strings.HasPrefix(rest+"/", part+"/") {
			return part
		}
	}
	return ""
}
