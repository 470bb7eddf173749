package config

import (
	"net/url"
	"slices"
)

// masked is shown in place of secrets.
const masked = "***"

// Public returns [File.Show] for everyone who may read a daemon's state. It also masks the hashes of tokens, and shows
// only the host of the alerts webhook. The result cannot be parsed again.
func (f *File) Public() ([]byte, error) {
	shown := *f
	shown.Tokens = slices.Clone(f.Tokens)
	for i := range shown.Tokens {
		shown.Tokens[i].Hash = masked
	}
	if s, ok := f.sources["alerts.webhook"]; f.Alerts.Webhook != "" && (!ok || s.text != f.Alerts.Webhook) {
		shown.Alerts.Webhook = masked
		if u, err := url.Parse(f.Alerts.Webhook); err == nil && u.Host != "" {
			shown.Alerts.Webhook = u.Scheme + "://" + u.Host + "/" + masked
		}
	}
	return shown.Show()
}
