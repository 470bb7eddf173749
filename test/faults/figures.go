package main

import (
	"fmt"
	"math"
	"sort"
	"time"
)

const (
	// decide is how long after its deadline a caller may still wait for its error. Twice the longest delay of a timer
	// in the same run comes on top, because the machine causes it: once for the deadline's own timer, and once for
	// waking the caller.
	decide = 100 * time.Millisecond
	// openSettles is how long after an outage a process with on_store_failure: open may take to notice that the store
	// is back.
	openSettles = 3 * time.Second
)

// figures computes the figures of the run.
func (x *run) figures(f *fleet) {
	uses := x.ledger.usesOf(rolling)
	x.Grants, x.Renewed = len(x.ledger.uses), x.ledger.renewed
	x.Use = share(uses, x.start, x.stop)
	if x.over.sub(x.began) >= time.Second {
		part := share(uses, x.began, x.over)
		x.InFault = &part
	}
	for _, m := range x.ledger.misses {
		if m.kind != "notnow" { // expected for callers that do not wait
			x.Errors[m.kind]++
		}
		if m.kind == "store" && m.got >= x.began && (x.First == nil || ms(m.got.sub(x.began)) < *x.First) {
			x.First = some(ms(m.got.sub(x.began)))
		}
	}
	x.sayErrors()
	for _, o := range x.ledger.outages {
		if !o.over && o.at >= x.began && (x.Noticed == nil || ms(o.at.sub(x.began)) < *x.Noticed) {
			x.Noticed = some(ms(o.at.sub(x.began)))
		}
	}
	for _, u := range x.ledger.uses {
		if u.closed != 0 {
			x.Close = max(x.Close, ms(u.closed.sub(u.closing)))
		}
	}
	x.Gap = ms(longestGap(uses, x.began, x.stop))
	if at, ok := backAt(uses, x.over); ok {
		x.Back = some(ms(at.sub(x.over)))
	}
	if n := len(f.all()); n > 0 {
		x.CPU = f.cpu().Seconds() / x.stop.sub(x.start).Seconds() / float64(n)
	}
}

// sayErrors notes the first error of each sort.
func (x *run) sayErrors() {
	seen := map[string]int{}
	for _, m := range x.ledger.misses {
		sort := m.kind + " " + m.text[max(0, len(m.text)-40):] // the end of the text: its beginning names the pool and the address
		if seen[sort]++; m.kind == "notnow" || m.kind == "deadline" || seen[sort] > 1 || len(seen) > maxSorts {
			continue
		}
		x.ledger.note(fmt.Sprintf("%s error, %s: %s", m.kind, after(m.got, x.began), m.text))
	}
}

// maxSorts bounds the number of sorts of errors that are noted.
const maxSorts = 5

// between returns the uses from one time to another. uses is sorted by time.
func between(uses []use, from, to stamp) []use {
	i := sort.Search(len(uses), func(i int) bool { return uses[i].used >= from })
	k := sort.Search(len(uses), func(i int) bool { return uses[i].used >= to })
	return uses[i:max(i, k)]
}

// share returns the uses as a fraction of what the rolling limit admits.
func share(uses []use, from, to stamp) float64 {
	return float64(len(between(uses, from, to))) / admits(to.sub(from))
}

// longestGap returns the longest time without a use.
func longestGap(uses []use, from, to stamp) (longest time.Duration) {
	last := from
	for _, u := range between(uses, from, to) {
		longest, last = max(longest, u.used.sub(last)), u.used
	}
	return max(longest, to.sub(last))
}

// backAt returns when the full rate was back after the fault: the start of the first window with enough uses.
func backAt(uses []use, over stamp) (stamp, bool) {
	need := int(math.Ceil(fullRate * rollingSize))
	from := between(uses, over, math.MaxInt64)
	if len(from) >= need && from[need-1].used.sub(over) < window {
		return over, true
	}
	for i := 0; i+need <= len(from); i++ {
		if from[i+need-1].used.sub(from[i].used) < window {
			return from[i].used, true
		}
	}
	return 0, false
}

// check checks all rules.
func (x *run) check(f *fleet) {
	killed := map[int]stamp{}
	for _, w := range f.all() {
		if at := w.killedAt(); at != 0 {
			killed[w.number] = at
		}
	}
	v := checkRolling(x.counted(rolling), rollingSize, window, x.began)
	x.Rolling = v.worst
	x.violated(rolling, v)
	v = checkRolling(x.counted(strict), strictSize, window, x.began)
	x.Strict = v.worst
	x.violated(strict, v)
	v = checkBucket(x.counted(bucket), bucketBurst, bucketRate, x.began)
	x.Bucket = v.worst
	x.violated(bucket, v)
	v = checkPlaces(x.counted(places), placesSize, killed, x.began)
	x.Places = v.worst
	x.violated(places, v)
	x.callers()
	if x.Back == nil {
		x.broke("%v after the fault the rolling pool has not been back at %.0f%% of its rate", round(x.stop.sub(x.over)), 100*fullRate)
	}
	for pool, name := range poolNames {
		if len(between(x.ledger.usesOf(pool), x.start, x.began)) == 0 {
			x.broke("pool %s: nothing was granted before the fault, so the run shows nothing", name)
		}
	}
	if x.fault.rules != nil {
		x.fault.rules(x)
	}
}

// counted returns the uses for which Sluice promises the limits. Uses during an outage with on_store_failure: open do
// not count.
func (x *run) counted(pool int) []use {
	uses := x.ledger.usesOf(pool)
	if x.fault.mode != "open" {
		return uses
	}
	var list []use
	for _, u := range uses {
		if u.used < x.began || u.used > x.over.add(openSettles+x.ledger.late) {
			list = append(list, u)
		}
	}
	return list
}

func (x *run) violated(pool int, v verdict) {
	x.Breaks += v.breaks
	for _, b := range v.broken {
		x.broke("pool %s: %s", poolNames[pool], b)
	}
	if more := v.breaks - len(v.broken); more > 0 {
		x.broke("pool %s: and %d more", poolNames[pool], more)
	}
}

// callers checks the rules about single requests.
func (x *run) callers() {
	v := checkDouble(x.ledger.uses)
	x.Double = v.breaks
	x.Broken = append(x.Broken, v.broken...)
	late, who := overdue(x.ledger)
	allowed := decide + 2*x.ledger.late
	x.Late, x.Allowed = ms(late), ms(allowed)
	if late > allowed {
		x.broke("a caller waited %v past its deadline, allowed are %v: %s", round(late), round(allowed), who)
	}
}

// checkCharges compares the number of requests that the store has charged with the number of grants. A request without
// an answer may have been charged, but only once.
func (x *run) checkCharges(sent int64, f *fleet) {
	doubt := len(x.ledger.misses)
	for _, w := range f.all() {
		if w.killedAt() != 0 {
			doubt += len(callers) // each caller may have been in the middle of a request
		}
	}
	twice := max(0, int(sent)-x.Grants-doubt)
	x.Twice = &twice
	if twice > 0 {
		x.broke("the store has charged %d requests; %d were granted, and %d more may have been", sent, x.Grants, doubt)
	}
}
