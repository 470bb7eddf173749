package provider

import (
	"reflect"
	"testing"
	"time"

	"github.com/sluicehq/sluice"
)

func TestStatedLimitsFindTheirs(t *testing.T) {
	minute := sluice.Limit{Name: "minute", Size: 80, Window: time.Minute}
	day := sluice.Limit{Name: "day", Kind: sluice.Fixed, Size: 1000, Window: 24 * time.Hour}
	inflight := sluice.Limit{Name: "inflight", Kind: sluice.Concurrency, Size: 20}
	each := sluice.Limit{Name: "each", Size: 5, Window: time.Minute, Per: []sluice.Scope{sluice.PerAgent}}
	perKey := sluice.Limit{Name: "key", Size: 5, Window: time.Minute, Per: []sluice.Scope{sluice.PerKey}}
	work := sluice.Limit{Name: "work", Unit: sluice.Work, Size: 5, Window: time.Minute}
	tokens := sluice.Limit{Name: "tpm", Unit: "tokens", Window: time.Minute}
	concurrent := limit("c", "requests", 20, 3, -1, 0)
	concurrent.Kind = sluice.Concurrency

	tests := []struct {
		name   string
		stated []Limit
		limits []sluice.Limit
		want   []string
	}{
		{"by name", []Limit{limit("day", "requests", 9, 1, -1, 0)}, []sluice.Limit{minute, day}, []string{"day"}},
		{"by window", []Limit{limit("x", "requests", 9, 1, -1, time.Minute)}, []sluice.Limit{minute, day}, []string{"minute"}},
		{"by unit", []Limit{limit("", "requests", 9, 1, -1, 0)}, []sluice.Limit{minute, inflight, tokens}, []string{"minute"}},
		{"another unit", []Limit{limit("tokens", "tokens", 9, 1, -1, 0)}, []sluice.Limit{minute, tokens}, []string{"tpm"}},
		{"doubtful", []Limit{limit("", "requests", 9, 1, -1, 0)}, []sluice.Limit{minute, day}, nil},
		{"another window", []Limit{limit("", "requests", 9, 1, -1, time.Hour)}, []sluice.Limit{minute, day}, nil},
		{"never our own", []Limit{limit("each", "requests", 9, 1, -1, 0), limit("work", "work", 9, 1, -1, 0)}, []sluice.Limit{each, work}, nil},
		{"per key is theirs", []Limit{limit("", "requests", 9, 1, -1, 0)}, []sluice.Limit{each, perKey}, []string{"key"}},
		{"concurrency", []Limit{concurrent}, []sluice.Limit{minute, inflight}, []string{"inflight"}},
		{"certain before likely", []Limit{limit("", "requests", 9, 1, -1, 0), limit("minute", "requests", 9, 2, -1, 0)}, []sluice.Limit{minute}, []string{"minute"}},
		{"nothing configured", []Limit{limit("a", "requests", 9, 1, -1, 0)}, nil, nil},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			o := Observation{Limits: tt.stated}
			var got []string
			for _, s := range o.Answer(tt.limits).Limits {
				got = append(got, s.Limit)
			}
			if !reflect.DeepEqual(got, tt.want) {
				t.Errorf("%v, want %v", got, tt.want)
			}
		})
	}
}

func TestAnswerTellsOnlyHints(t *testing.T) {
	for _, tt := range []struct {
		o    Observation
		want time.Duration
	}{
		{Observation{RetryAfter: time.Minute}, 0},
		{Observation{RetryAfter: 5 * time.Minute, Hinted: true}, 5 * time.Minute},
		{Observation{Hinted: true}, time.Second},
	} {
		if got := tt.o.Answer(nil).RetryAfter; got != tt.want {
			t.Errorf("%+v: %v, want %v", tt.o, got, tt.want)
		}
	}
}
