package sluice

import "testing"

// Status showed the store's address with its password.
func TestStatusShowsNoPassword(t *testing.T) {
	t.Parallel()
	for address, want := range map[string]string{
		"mem:":                               "mem:",
		"file:/var/lib/a b%zz":               "file:/var/lib/a b%zz",
		"redis://localhost:6379/0":           "redis://localhost:6379/0",
		"redis://me:hunter2@localhost:6379":  "redis://me:xxxxx@localhost:6379",
		"rediss://:hun@ter2@localhost:6379/": "rediss://:xxxxx@localhost:6379/",
	} {
		if got := withoutPassword(address); got != want {
			t.Errorf("%s: %s, want %s", address, got, want)
		}
	}
}
