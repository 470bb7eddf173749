package scaler

import (
	"errors"
	"strings"
	"testing"
)

// FuzzMetadata reads any metadata of a trigger, one field per line: an error names the field, and a parsed trigger is
// valid.
func FuzzMetadata(f *testing.F) {
	f.Add("resource=api\nmode=headroom\ntarget=20")
	f.Add("resourceFromEnv=API\nresource=x")
	f.Add("mode=light\ntarget=1.5")
	f.Add("mode=queue\ntarget=1e400\nclass=p9")
	f.Add("target=NaN")
	f.Fuzz(func(t *testing.T, text string) {
		metadata := map[string]string{}
		for line := range strings.Lines(text) {
			name, value, _ := strings.Cut(strings.TrimSuffix(line, "\n"), "=")
			metadata[name] = value
		}
		trigger, err := Parse(metadata, []string{"p0", "p1"})
		if err != nil {
			var named *MetadataError
			if !errors.As(err, &named) || named.Text == "" || len(err.Error()) > 4*maxText {
				t.Errorf("the error is %q", err)
			}
			return
		}
		if trigger.Target <= 0 || trigger.Target > maxTarget || trigger.Target != trigger.Target {
			t.Errorf("%+v", trigger)
		}
		if name := trigger.metricName(); len(name) > 63 || name == "" || strings.Trim(name, "abcdefghijklmnopqrstuvwxyz0123456789-") != "" {
			t.Errorf("the metric is called %q", name)
		}
	})
}
