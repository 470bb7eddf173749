//go:build slow && linux

package hosts

import (
	"fmt"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/sluicehq/sluice/sim/mock"
)

// phase is a part of the test.
type phase struct {
	name     string
	from, to time.Time
}

// phase runs from now until is returns true of the log, but at least for a time.
func (f *fleet) phase(name string, least time.Duration, is func(p phase, log []mock.Entry) bool) phase {
	f.Helper()
	p := phase{name: name, from: time.Now()}
	f.until(name, func() bool {
		if time.Since(p.from) < least {
			return false
		}
		p.to = time.Now()
		return is(p, f.entries())
	})
	p.to = time.Now()
	f.phases = append(f.phases, p)
	return p
}

func (f *fleet) entries() []mock.Entry {
	all, err := readLog(f.log)
	if err != nil {
		f.Fatal(err)
	}
	return all
}

// look is the time over which even compares the hosts.
const look = 3 * window / 2

// even returns a condition: these hosts, and no others, have recently sent about the same number of requests, and
// together about as many as the limit admits.
func (f *fleet) even(hosts ...*host) func(phase, []mock.Entry) bool {
	return func(p phase, log []mock.Entry) bool {
		from := p.to.Add(-look)
		if from.Before(p.from) {
			return false
		}
		lately := between(log, from, p.to)
		by, all := shares(lately)
		sum := 0
		for _, h := range hosts {
			n := by[h.name]
			if 2*n*len(hosts) < all { // less than half of an equal share
				return false
			}
			sum += n
		}
		// Two of seven parts are withheld for a host that is cut off. That would leave less than this.
		most, _ := worst(lately, window, from, p.to)
		return sum == all && most >= limit*8/10
	}
}

// table lists what the provider has seen in each phase.
func (f *fleet) table() string {
	log := f.entries()
	var b strings.Builder
	fmt.Fprintf(&b, "what the provider has seen, at most %d in any %v\n", limit, window)
	w := tabwriter.NewWriter(&b, 0, 0, 2, ' ', 0)
	fmt.Fprint(w, "phase\ttime\trequests")
	for _, h := range f.hosts {
		fmt.Fprintf(w, "\t%s", h.name)
	}
	fmt.Fprint(w, "\tworst window\trefused\n")
	for _, p := range f.phases {
		by, all := shares(between(log, p.from, p.to))
		most, refused := worst(log, window, p.from, p.to)
		fmt.Fprintf(w, "%s\t%.1f s\t%d", p.name, p.to.Sub(p.from).Seconds(), all)
		for _, h := range f.hosts {
			fmt.Fprintf(w, "\t%.0f%%", 100*float64(by[h.name])/float64(max(all, 1)))
		}
		fmt.Fprintf(w, "\t%d\t%d\n", most, refused)
	}
	_ = w.Flush()
	for _, c := range f.cascades {
		late := ""
		if max(c.held, c.free) > toldWithin {
			late = ", LATE"
		}
		fmt.Fprintf(&b, "cascade over three hosts, %s: held after %v, free after %v%s\n", c.when, c.held, c.free, late)
	}
	return b.String()
}
