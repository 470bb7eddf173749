package main

import (
	"cmp"
	"fmt"
	"slices"
	"time"
)

// cliFigures computes the figures of the command's calls and checks the rules.
func (x *run) cliFigures(k *cliCaller) {
	short, long := k.since("short", 0), k.since("long", 0)
	for _, list := range [][]use{short, long} {
		slices.SortFunc(list, func(a, b use) int { return cmp.Compare(a.used, b.used) })
	}
	x.Grants = len(short) + len(long)
	admitted := func(from, to stamp) float64 { return cliSize * to.sub(from).Seconds() / cliWindow.Seconds() }
	x.Use = float64(len(short)) / admitted(x.start, x.stop)
	if x.over.sub(x.began) >= time.Second {
		part := float64(len(between(short, x.began, x.over))) / admitted(x.began, x.over)
		x.InFault = &part
	}
	x.Gap = ms(longestGap(short, x.began, x.stop))
	v := checkRolling(short, cliSize, cliWindow, x.began)
	x.Rolling = v.worst
	for _, v := range []verdict{v, checkRolling(long, cliLongSize, 10*time.Minute, x.began)} {
		x.Breaks += v.breaks
		x.Broken = append(x.Broken, v.broken...)
	}
	d := checkDouble(slices.Concat(short, long))
	x.Double = d.breaks
	x.Broken = append(x.Broken, d.broken...)
	if back := between(short, x.over, x.stop); len(back) > 0 {
		x.Back = some(ms(back[0].used.sub(x.over)))
	} else {
		x.broke("%v after FLUSHALL nothing is granted yet on a window of %v", round(x.stop.sub(x.over)), cliWindow)
	}
	if len(between(short, x.start, x.began)) == 0 || len(between(long, x.start, x.began)) == 0 {
		x.broke("nothing was granted before the fault, so the run shows nothing")
	}
	for _, kind := range []string{"store", "other"} {
		if text := k.first[kind]; text != "" {
			x.Notes = append(x.Notes, "the first of its kind: "+text)
		}
	}
	if k.errors["other"] > 0 {
		x.broke("the command failed in an unexpected way %d times", k.errors["other"])
	}
	delete(x.Errors, "notnow")
	if k.slow > 0 {
		x.Notes = append(x.Notes, fmt.Sprintf("%d calls took longer than the slack, and count for nothing", k.slow))
	}
}
