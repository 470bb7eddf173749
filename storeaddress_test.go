package sluice

import "testing"

// Status showed the store's address with its password.
func TestStatusShowsNoPassword(t *testing.T) {
	t.Parallel()
	for address, want := range map[string]string{
		"mem:":                               "mem:",
		"file:/var/lib/a b%zz":               "file:/var/lib/a b%zz",
		"redis://localhost:6379/0":           "redis://localhost:6379/0",
		"redis://me@localhost:6379":          "redis://me@localhost:6379",
		"redis://me:hunter2@localhost:6379":  "redis://me:***@localhost:6379",
		"rediss://:hun@ter2@localhost:6379/": "rediss://:***@localhost:6379/",
		"redis+unix://me:hunter2@/run/redis": "redis+unix://me:***@/run/redis",

		"redis+cluster://me:hunter2@a:1,[::1]:2,c?prefix=x":                                             "redis+cluster://me:***@a:1,[::1]:2,c?prefix=x",
		"redis+sentinel://a:1,b:2/main/1?prefix=x&sentinel_user=u&sentinel_password=hunter2&timeout=1s": "redis+sentinel://a:1,b:2/main/1?prefix=x&sentinel_user=u&sentinel_password=***&timeout=1s",
	} {
		if got := withoutPassword(address); got != want {
			t.Errorf("%s: %s, want %s", address, got, want)
		}
	}
}
