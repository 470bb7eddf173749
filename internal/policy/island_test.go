package policy

import (
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/sluicehq/sluice/internal/meter"
)

func islandDef(t interface{ Fatal(...any) }, kind meter.Kind, guard meter.Guard, window time.Duration) meter.Def {
	d, err := meter.Compile(kind, guard, window, 0)
	if err != nil {
		t.Fatal(err)
	}
	return d
}

// island is one with a share of a third of one limit, from 3 s to 300 s after noon.
func island(l IslandLimit, open ...IslandTicket) *Island {
	return NewIsland(3, noon+3*sec, noon+300*sec, []IslandLimit{l}, open)
}

func allows(t *testing.T, is *Island, at, ttl, amount int64, want bool, retry int64) {
	t.Helper()
	ok, again := is.Allow(noon+at, ttl, []int64{amount})
	if ok {
		is.Take(noon+at, ttl, []int64{amount})
	}
	if retry != meter.Never {
		retry += noon
	}
	if ok != want || !ok && again != retry {
		t.Errorf("at %d µs: %v, again at %d, want %v, %d", at, ok, again-noon, want, retry-noon)
	}
}

func TestIslandReusesItsOwnChargesThenHasItsShare(t *testing.T) {
	d := islandDef(t, meter.Rolling, meter.Auto, time.Minute) // slack 1 s, at most 7.5 s
	is := island(IslandLimit{Def: d, Size: 9, Standing: []Lingering{
		{1, noon - 50*sec, noon - 49*sec}, {1, noon - 20*sec, noon - 19*sec},
		{1, noon - 59*sec, noon - 58*sec}, // others may have it by the time it starts
	}})
	allows(t, is, 2*sec, sec, 1, false, 3*sec)
	allows(t, is, 3*sec, sec, 1, false, 11*sec) // two stand, and two are all there is
	allows(t, is, 11*sec, sec, 1, true, 0)
	allows(t, is, 11*sec, sec, 1, false, 41*sec)
	allows(t, is, 41*sec, sec, 1, true, 0)
	allows(t, is, 42*sec, sec, 1, false, 70_500_000) // a window and the longest slack after it began
	allows(t, is, 70_500_000, sec, 1, true, 0)
	allows(t, is, 70_500_000, sec, 1, false, 78_500_000) // the first of its own comes back
	allows(t, is, 70_500_000, sec, 4, false, meter.Never)
	allows(t, is, 300*sec, sec, 1, false, meter.Never)
	if got := is.Lingering(noon + 77*sec)[0]; got != 3 {
		t.Errorf("%d stand", got)
	}
	if got := is.Lingering(noon + 110*sec)[0]; got != 1 {
		t.Errorf("%d stand", got)
	}
}

func TestIslandAnswerBoundsAnArrival(t *testing.T) {
	d := islandDef(t, meter.Rolling, meter.Auto, time.Minute)
	is := island(IslandLimit{Def: d, Size: 3}, IslandTicket{Amounts: []int64{1}, Granted: noon - sec, Due: noon + 100*sec})
	allows(t, is, 3*sec, sec, 1, false, 66_500_000)
	is.Answer(0, noon+sec)
	allows(t, is, 3*sec, sec, 1, false, 61*sec)
	allows(t, is, 61*sec, sec, 1, true, 0)
	is.Answer(1, noon+61*sec)
	is.Answer(99, noon) // of nobody
	allows(t, is, 62*sec, sec, 1, false, 70_500_000)
	allows(t, is, 70_500_000, sec, 1, false, 121*sec)
	allows(t, is, 121*sec, sec, 1, true, 0)
}

func TestIslandWaitsForAResetThatIsAllItsOwn(t *testing.T) {
	d := islandDef(t, meter.Fixed, meter.Auto, time.Minute)
	l := IslandLimit{Def: d, Size: 9, Lo: noon + 10*sec, Hi: noon + 12*sec, Standing: []Lingering{{2, noon - sec, noon}}}
	is := island(l)
	allows(t, is, 5*sec, sec, 1, false, 72*sec) // requests of others may arrive after the first
	allows(t, is, 72*sec, sec, 3, true, 0)
	allows(t, is, 72*sec, sec, 1, false, 132*sec)
	allows(t, is, 132*sec, sec, 1, true, 0)
	l.Lo, l.Hi = noon+11*sec, noon+13*sec
	is = island(l)
	allows(t, is, 5*sec, sec, 3, false, 13*sec)
	allows(t, is, 13*sec, sec, 3, true, 0)
	l.Hi, l.Lo = 0, 0 // kept as a rolling one
	is = island(l)
	allows(t, is, 5*sec, sec, 1, false, 60*sec)
	allows(t, is, 60*sec, sec, 2, true, 0)
}

func TestIslandOfABucketStartsFull(t *testing.T) {
	d := islandDef(t, meter.Bucket, meter.Auto, time.Second) // slack 1 s at most
	is := island(IslandLimit{Def: d, Size: 3, Burst: 9})
	allows(t, is, 3*sec, sec, 1, false, 5*sec) // one a second of its own, from 4 s on
	allows(t, is, 5*sec, sec, 1, true, 0)
	allows(t, is, 6*sec, sec, 1, true, 0)
	allows(t, is, 6*sec, sec, 1, false, 7*sec)
	allows(t, is, 20*sec, sec, 3, true, 0)
	allows(t, is, 20*sec, sec, 4, false, meter.Never)
	allows(t, is, 20*sec, sec, 1, false, 21*sec)
	is.Answer(2, noon+20*sec+1)
	allows(t, is, 20*sec+1, sec, 1, false, 21*sec+1)
}

func TestIslandReusesPlacesForRequestsThatAreOverInTime(t *testing.T) {
	d := islandDef(t, meter.Concurrency, meter.Off, 0)
	is := island(IslandLimit{Def: d, Size: 9},
		IslandTicket{Amounts: []int64{1}, Granted: noon - sec, Due: noon + 100*sec},
		IslandTicket{Amounts: []int64{1}, Granted: noon - sec, Due: noon + 2*sec}) // the pool has given it to others
	allows(t, is, 3*sec, sec, 1, false, 100*sec)
	is.Close(0, noon+4*sec)
	allows(t, is, 4*sec, 300*sec, 1, false, meter.Never)
	allows(t, is, 4*sec, 200*sec, 1, true, 0)
	allows(t, is, 5*sec, sec, 1, false, 204*sec)
	is.Close(2, noon+6*sec)
	is.Close(2, noon+60*sec) // a second time
	allows(t, is, 6*sec, sec, 1, true, 0)
}

func TestIslandHasNothingOf(t *testing.T) {
	for name, l := range map[string]IslandLimit{
		"a long window":      {Def: islandDef(t, meter.Rolling, meter.Auto, time.Hour), Size: 9},
		"a bucket like that": {Def: islandDef(t, meter.Bucket, meter.Auto, time.Minute), Size: 1, Burst: 11},
		"a strict one":       {Def: islandDef(t, meter.Rolling, meter.Strict, time.Second), Size: 9},
		"less than one":      {Def: islandDef(t, meter.Rolling, meter.Auto, time.Second), Size: 2},
	} {
		is := island(l)
		if ok, again := is.Allow(noon+200*sec, sec, []int64{1}); ok || again != meter.Never {
			t.Errorf("%s: %v, again at %d", name, ok, again-noon)
		}
	}
	known := IslandLimit{Def: islandDef(t, meter.Rolling, meter.Auto, time.Second), Size: 9}
	if ok, _ := NewIsland(0, noon, noon+300*sec, []IslandLimit{known}, nil).Allow(noon+200*sec, sec, []int64{1}); ok {
		t.Error("one with no share")
	}
	known.Size = 0
	if ok, _ := island(known).Allow(noon+4*sec, sec, []int64{1 << 40}); !ok {
		t.Error("a limit whose size nobody knows refuses")
	}
}

// The time to ask again is always later than now, and an island never remembers more than its bound.
func TestIslandIsBoundedAndGoesOn(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		kind := meter.Kind(rapid.IntRange(0, 3).Draw(t, "kind"))
		l := IslandLimit{Def: islandDef(t, kind, meter.Guard(rapid.IntRange(0, 2).Draw(t, "guard")), 10*time.Second), Size: 100}
		if kind == meter.Fixed && rapid.Bool().Draw(t, "known") {
			l.Lo, l.Hi = noon+4*sec, noon+5*sec
		}
		is := NewIsland(rapid.Int64Range(1, 4).Draw(t, "share"), noon+3*sec, noon+200*sec, []IslandLimit{l},
			[]IslandTicket{{Amounts: []int64{5}, Granted: noon, Due: noon + 100*sec}})
		now := noon
		for range 200 {
			now += rapid.Int64Range(0, sec).Draw(t, "dt")
			amount := []int64{rapid.Int64Range(1, 10).Draw(t, "amount")}
			ok, again := is.Allow(now, 5*sec, amount)
			if !ok && again <= now {
				t.Fatalf("again at %d, which is %d ago", again, now-again)
			}
			if ok {
				n := is.Take(now, 5*sec, amount)
				if rapid.Bool().Draw(t, "answer") {
					is.Answer(n, now+1)
				}
				if rapid.Bool().Draw(t, "close") {
					is.Close(n, now+2)
				}
			}
		}
		if is.sweep(now + 1000*sec); len(is.tickets) > 0 {
			t.Errorf("%d are remembered when all is over", len(is.tickets))
		}
	})
}
