package store_test

import (
	"testing"

	"github.com/sluicehq/sluice/store"
)

func TestAmountOf(t *testing.T) {
	t.Parallel()
	minute := store.Limit{Name: "minute", Unit: "requests"}
	unit := func(unit string, n int64) store.Amount { return store.Amount{Unit: unit, N: n} }
	for name, c := range map[string]struct {
		amounts []store.Amount
		n       int64
		stated  bool
	}{
		"nothing":                {nil, 0, false},
		"the unit":               {[]store.Amount{unit("tokens", 7), unit("requests", 3)}, 3, true},
		"another unit":           {[]store.Amount{unit("tokens", 7)}, 0, false},
		"nothing of it, stated":  {[]store.Amount{unit("requests", 0)}, 0, true},
		"the limit":              {[]store.Amount{{Limit: "minute", N: 5}}, 5, true},
		"the limit, by its unit": {[]store.Amount{{Unit: "requests", Limit: "minute", N: 5}}, 5, true},
		"a limit of that name":   {[]store.Amount{{Unit: "tokens", Limit: "minute", N: 5}}, 0, false},
		"another limit":          {[]store.Amount{{Unit: "requests", Limit: "hour", N: 5}}, 0, false},
		"the last one counts":    {[]store.Amount{{Limit: "minute", N: 5}, unit("requests", 1)}, 1, true},
	} {
		if n, stated := store.AmountOf(c.amounts, &minute); n != c.n || stated != c.stated {
			t.Errorf("%s: %d %v, want %d %v", name, n, stated, c.n, c.stated)
		}
	}
}
