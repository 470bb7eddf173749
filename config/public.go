package config

import (
	"net/url"
	"slices"
)

// masked stands for what is not shown.
const masked = "***"

// Public is [File.Show] for everybody who may look at a daemon: hashes of tokens are masked too, and of the address that alerts are
// posted to only the host is shown. It cannot be parsed again.
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
