package storeurl_test

import (
	"regexp"
	"testing"

	"github.com/sluicehq/sluice/internal/storeurl"
)

func TestLabelTellsStoresApart(t *testing.T) {
	form := regexp.MustCompile(`^(mem|file|(http|redis)-[0-9a-f]{12})$`)
	whose := map[string]int{}
	for i, same := range [][]string{
		{"mem:"},
		{"file:", "file:/var/lib/sluice"}, // its log lies in its directory
		{"redis://localhost", "redis://localhost:6379/0", "redis://127.0.0.1", "redis://[::1]:6379", "redis://:secret@localhost/", "redis://user:other@LOCALHOST/00?timeout=5s", "redis://localhost?prefix=sluice", "rediss://localhost?insecure=true"},
		{"redis://localhost/5", "redis://:secret@localhost:6379/5"},
		{"redis://localhost/6"},
		{"redis://localhost?prefix=team"},
		{"redis://localhost:6380"},
		{"redis://one.example", "redis://One.Example:6379"},
		{"redis+cluster://one,two", "redis+cluster://two:6379,one", "rediss+cluster://user:secret@one,two"},
		{"redis+sentinel://one/main", "redis+sentinel://one:26379/main/0?sentinel_password=secret"},
		{"redis+sentinel://one/other"},
		{"redis+sentinel://one/main/2"},
		{"redis+unix:///run/redis.sock", "redis+unix://:secret@/run/redis.sock?db=0"},
		{"redis+unix:///run/redis.sock?db=1"},
		{"redis+unix:///run/other.sock"},
		{"http://127.0.0.1:7979", "http://localhost:7979", "http://:secret@localhost:7979/", "https://[::1]:7979"},
		{"http://127.0.0.1:7980"},
		{"http://gate.example", "http://gate.example:80"},
		{"https://gate.example"},
		{"http+unix:/run/sluice.sock", "http+unix:///run/sluice.sock"},
	} {
		for _, url := range same {
			label := storeurl.Label(url)
			if !form.MatchString(label) {
				t.Errorf("%s: %q", url, label)
			}
			if was, ok := whose[label]; ok && was != i || label != storeurl.Label(same[0]) {
				t.Errorf("%s: label %s is that of %s and line %d", url, label, same[0], was)
			}
			whose[label] = i
		}
	}
}

func FuzzLabel(f *testing.F) {
	f.Add("redis://user:secret@one,two:1/5?prefix=a&db=3")
	f.Add("http+unix:/x")
	safe := regexp.MustCompile(`^[a-z+]+(-[0-9a-f]{12})?$`)
	f.Fuzz(func(t *testing.T, url string) {
		if _, _, err := storeurl.Split(url); err != nil {
			return
		}
		if label := storeurl.Label(url); !safe.MatchString(label) {
			t.Errorf("%q: %q", url, label)
		}
	})
}
