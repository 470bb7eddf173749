package oplog

import (
	"math"
	"strings"
	"time"

	"github.com/sluicehq/sluice/store"
	"pgregory.net/rapid"
)

// Values that have made codecs stumble come more often than others, and most fields of an op
// are not set.
var (
	numbers = rapid.OneOf(rapid.Just(int64(0)), rapid.Int64Range(-2, 200), rapid.Int64(),
		rapid.SampledFrom([]int64{math.MinInt64, math.MaxInt64, -1, 63, 64, -64, -65, 1 << 40}))
	times   = rapid.Map(numbers, func(n int64) time.Duration { return time.Duration(n) })
	small   = rapid.OneOf(rapid.Just(uint8(0)), rapid.Uint8())
	ids     = rapid.OneOf(rapid.Just(uint64(0)), rapid.Uint64(), rapid.Just(uint64(math.MaxUint64)))
	ints    = rapid.OneOf(rapid.Just(0), rapid.Int(), rapid.SampledFrom([]int{math.MinInt, math.MaxInt}))
	strs    = rapid.OneOf(rapid.Just(""), rapid.SampledFrom([]string{"agent", "agent-2", "\x00", "\xff\xfe"}), rapid.String(), longStrs)
	longStr = strings.Repeat("long ", 1000)
	// Also such as a pool refuses: it must do so again.
	longStrs = rapid.Map(rapid.IntRange(120, len(longStr)), func(n int) string { return longStr[:n] })
)

var observations = rapid.Custom(func(t *rapid.T) store.Observed {
	return store.Observed{
		Limit: strs.Draw(t, "limit"), Size: numbers.Draw(t, "size"), Remaining: numbers.Draw(t, "remaining"),
		ResetIn: times.Draw(t, "reset in"), Slop: times.Draw(t, "slop"),
	}
})

var someAmounts = rapid.Custom(func(t *rapid.T) store.Amount {
	return store.Amount{Unit: strs.Draw(t, "unit"), Limit: strs.Draw(t, "limit"), N: numbers.Draw(t, "amount")}
})

var someOps = rapid.SliceOfN(rapid.Custom(func(t *rapid.T) (op store.Op) {
	op = store.Op{
		Kind:  store.OpKind(small.Draw(t, "kind")),
		ID:    store.ID{Session: ids.Draw(t, "session"), N: ids.Draw(t, "n")},
		Agent: strs.Draw(t, "agent"), Class: small.Draw(t, "class"),
		Wait: times.Draw(t, "wait"), TTL: times.Draw(t, "ttl"),
	}
	op.Amounts = none(rapid.SliceOfN(someAmounts, 0, 8).Draw(t, "amounts"))
	if rapid.Bool().Draw(t, "answers") {
		op.Model, op.Key = strs.Draw(t, "model"), strs.Draw(t, "key")
		op.Verdict = store.Verdict(small.Draw(t, "verdict"))
		op.Alive, op.Spent = times.Draw(t, "alive"), rapid.Bool().Draw(t, "spent")
		op.Observed = none(rapid.SliceOfN(observations, 0, 20).Draw(t, "observed"))
	}
	if rapid.Bool().Draw(t, "rare") {
		op.User, op.Tool = strs.Draw(t, "user"), strs.Draw(t, "tool")
		op.Retry, op.Emergency = rapid.Bool().Draw(t, "retry"), rapid.Bool().Draw(t, "emergency")
		op.RetryAfter, op.Scope = times.Draw(t, "retry after"), store.Scope(small.Draw(t, "scope"))
		op.Cause, op.Machine = strs.Draw(t, "cause"), strs.Draw(t, "machine")
		op.WaitsFor = none(rapid.SliceOfN(strs, 0, store.MaxWaits).Draw(t, "waits for"))
		op.Slots = store.Slots{Max: ints.Draw(t, "slots"), TTL: times.Draw(t, "slots ttl")}
		op.Age = times.Draw(t, "age")
		op.Share, op.Until = numbers.Draw(t, "share"), store.Time(numbers.Draw(t, "until"))
	}
	return op
}), 0, 8)

var backoffs = rapid.Custom(func(t *rapid.T) store.Backoff {
	return store.Backoff{Start: times.Draw(t, "start"), Factor: numbers.Draw(t, "factor"), Cap: times.Draw(t, "cap")}
})

var someLimits = rapid.SliceOfN(rapid.Custom(func(t *rapid.T) store.Limit {
	return store.Limit{
		Name: strs.Draw(t, "name"), Kind: store.Kind(small.Draw(t, "kind")), Unit: strs.Draw(t, "unit"),
		Size: numbers.Draw(t, "size"), Burst: numbers.Draw(t, "burst"), Window: times.Draw(t, "window"),
		Per: store.Scope(small.Draw(t, "per")), Guard: store.Guard(small.Draw(t, "guard")), Slack: times.Draw(t, "slack"),
		Late: rapid.Bool().Draw(t, "late"), SizeIsDefault: rapid.Bool().Draw(t, "guess"), Estimated: rapid.Bool().Draw(t, "rough"),
		Reset: store.Time(numbers.Draw(t, "reset")),
	}
}), 0, store.MaxLimits)

var someClasses = rapid.SliceOfN(rapid.Custom(func(t *rapid.T) store.Class {
	return store.Class{Name: strs.Draw(t, "name"), Weight: numbers.Draw(t, "weight")}
}), 0, store.MaxClasses)

var specs = rapid.Custom(func(t *rapid.T) store.Spec {
	return store.Spec{
		Name: strs.Draw(t, "name"), Limits: none(someLimits.Draw(t, "limits")), Classes: none(someClasses.Draw(t, "classes")),
		Order: store.Order(small.Draw(t, "order")), MaxWaiting: ints.Draw(t, "max waiting"), MaxMeters: ints.Draw(t, "max meters"),
		Throttle: backoffs.Draw(t, "throttle"), Overload: backoffs.Draw(t, "overload"),
		Light: store.Light{Green: numbers.Draw(t, "green"), Red: numbers.Draw(t, "red"),
			Static: rapid.Bool().Draw(t, "static"), All: rapid.Bool().Draw(t, "all")},
		Breaker: store.Breaker{Within: times.Draw(t, "within"), Samples: ints.Draw(t, "samples"), Open: rapid.Bool().Draw(t, "open")},
		Reserve: numbers.Draw(t, "reserve"), Shares: rapid.Bool().Draw(t, "shares"), Pace: rapid.Bool().Draw(t, "pace"),
		Lease: times.Draw(t, "lease"), Member: strs.Draw(t, "member"), ReadOnly: rapid.Bool().Draw(t, "look"),
	}
})

// entries are whole entries of either kind.
var entries = rapid.Custom(func(t *rapid.T) []byte {
	now := store.Time(numbers.Draw(t, "now"))
	if rapid.Bool().Draw(t, "define") {
		spec := specs.Draw(t, "spec")
		return AppendDefine(nil, now, &spec, rapid.Bool().Draw(t, "alone"))
	}
	return AppendApply(nil, now, someOps.Draw(t, "ops"))
})

// none makes an empty slice nil, as it comes back.
func none[T any](s []T) []T {
	if len(s) == 0 {
		return nil
	}
	return s
}
