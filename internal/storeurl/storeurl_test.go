package storeurl_test

import (
	"strings"
	"testing"

	"github.com/sluicehq/sluice/internal/storeurl"
)

func TestSplit(t *testing.T) {
	for url, want := range map[string]string{
		"mem:": "mem", "file:": "file", "file:/var/lib/sluice": "file", "file:state": "file",
		"redis://:secret@one:6379": "redis", "rediss+cluster://one,two": "rediss+cluster", "http+unix:/run/s": "http+unix",
	} {
		scheme, rest, err := storeurl.Split(url)
		if err != nil || scheme != want || scheme+":"+rest != url {
			t.Errorf("%s: %q %q %v", url, scheme, rest, err)
		}
	}
	for url, want := range map[string]string{
		"": "begin with", "redis": "begin with", "secret://one": "begin with", "/secret": "begin with",
		"mem:secret": "nothing follows", "file://secret": "comes a directory", "file:secret\x00": "comes a directory",
	} {
		scheme, rest, err := storeurl.Split(url)
		if err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "secret") || scheme+rest != "" {
			t.Errorf("%q: %q %q %v", url, scheme, rest, err)
		}
	}
}
