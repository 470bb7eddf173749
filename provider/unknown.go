package provider

import (
	"slices"
	"strings"

	"github.com/sluicehq/sluice/store"
)

// unknownWords are the codes with which providers say that they do not have a model, in lower case.
var unknownWords = []string{"model_not_found", "model_not_exist", "invalid_model", "unknown_model", "model_not_available", "deploymentnotfound"}

// unknownTexts are parts of messages that say so, in lower case. They count in messages that speak of a model.
var unknownTexts = []string{"does not exist", "not exist", "not found", "not a valid model", "invalid model", "unknown model", "no such model", "model identifier is invalid"}

// unknownModel sets the cause of an answer that rejects a request for a model that the provider does not have. A 401 is about
// the key, whatever its text says; a 403 may be about a model that the key may not use.
func (o *Observation) unknownModel(r *Response, f *failure) {
	if o.Verdict != store.VerdictOK || r.Status == 401 || r.Status < 400 || r.Status > 499 || !f.there && f.text == "" {
		return
	}
	known := slices.ContainsFunc(unknownWords, func(w string) bool { return slices.Contains(f.words, w) }) ||
		strings.HasPrefix(f.text, "model: ") && slices.Contains(f.words, "not_found_error") ||
		strings.Contains(f.text, "model") && slices.ContainsFunc(unknownTexts, func(t string) bool { return strings.Contains(f.text, t) })
	if !known {
		return
	}
	if o.Cause = "the provider does not know the model"; r.Model != "" {
		o.Cause = "the provider does not know model " + r.Model
	}
}
