package daemon

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/config"
)

func resourcesOf(f *config.File) []string {
	return append([]string{}, slices.Sorted(maps.Keys(f.Resources))...)
}

// compare describes in a few words what another configuration changes. It shows no values, because some are secret.
func compare(old, now *config.File) Reloaded {
	done := Reloaded{Resources: []string{}, Changed: []string{}, Warnings: []string{}}
	for _, name := range resourcesOf(now) {
		if before, ok := old.Resources[name]; !ok {
			done.Changed = append(done.Changed, "resource "+name+" is new")
		} else if fields := differ(reflect.ValueOf(before), reflect.ValueOf(now.Resources[name])); len(fields) > 0 {
			done.Changed = append(done.Changed, fmt.Sprintf("resource %s: %s", name, strings.Join(fields, ", ")))
		}
	}
	for _, name := range resourcesOf(old) {
		if _, ok := now.Resources[name]; !ok {
			done.Changed = append(done.Changed, "resource "+name+" is gone")
		}
	}
	for _, field := range differ(reflect.ValueOf(*old), reflect.ValueOf(*now)) {
		switch field {
		case "resources":
		case "store", "listen", "tls": // Load refuses changes that need a restart
			done.Warnings = append(done.Warnings, field+" is not what is in use: the command line or the environment says something else")
		default:
			done.Changed = append(done.Changed, field)
		}
	}
	return done
}

// differ returns the names, as in the file, of the fields in which two values differ.
func differ(a, b reflect.Value) []string {
	var names []string
	for i := range a.NumField() {
		field := a.Type().Field(i)
		name, _, _ := strings.Cut(field.Tag.Get("yaml"), ",")
		if field.IsExported() && name != "" && name != "-" && !reflect.DeepEqual(a.Field(i).Interface(), b.Field(i).Interface()) {
			names = append(names, name)
		}
	}
	return names
}

// forgotten lists limits that do not take over the charges of the limits they replace: those with another scope, unit or
// name. A pool passes charges on by name, and cannot divide them among other meters.
func forgotten(old, now *config.File, at time.Time) (list []string) {
	before, err := old.GateConfig(at)
	if err != nil {
		return nil // it was in force: this cannot happen
	}
	after, err := now.GateConfig(at)
	if err != nil {
		return nil // opening its gate fails too, with the reason
	}
	for _, name := range slices.Sorted(maps.Keys(after.Resources)) {
		was, is := before.Resources[name].Limits, after.Resources[name].Limits
		for i := range is {
			l := &is[i]
			k := slices.IndexFunc(was, func(o sluice.Limit) bool { return o.Name == l.Name })
			var how string
			switch {
			case k < 0:
				gone := slices.IndexFunc(was, func(o sluice.Limit) bool {
					return unitOf(&o) == unitOf(l) && !slices.ContainsFunc(is, func(n sluice.Limit) bool { return n.Name == o.Name })
				})
				if gone < 0 {
					continue // nothing was counted for it
				}
				how = "replaces " + was[gone].Name + " and starts empty"
			case unitOf(&was[k]) != unitOf(l):
				how = "counts another unit now and starts empty"
			case scopes(was[k].Per) != scopes(l.Per):
				how = "has another scope now and starts empty"
			default:
				continue
			}
			span := "running requests do not count against it"
			if l.Window > 0 {
				span = fmt.Sprintf("requests of the last %v do not count against it, and for as long the provider may get more than the limit", l.Window)
			}
			list = append(list, fmt.Sprintf("resource %s: limit %s %s: %s", name, l.Name, how, span))
		}
	}
	return list
}

func unitOf(l *sluice.Limit) string { return cmp.Or(l.Unit, sluice.Requests) }

func scopes(list []sluice.Scope) (set sluice.Scope) {
	for _, s := range list {
		set |= s
	}
	return set
}

// differing lists limits whose size differs from the configuration because another process states less.
func differing(ctx context.Context, gate *sluice.Gate) []string {
	var list []string
	status, err := gate.Status(ctx)
	if err != nil {
		return list // other messages say that the store is unreachable
	}
	for _, r := range status.Resources {
		for _, l := range r.Limits {
			if l.DiffersFrom != "" && l.Scope == "" {
				list = append(list, fmt.Sprintf("resource %s: limit %s is %d, stated by %s: while other processes use the resource, the smallest holds; restart or reload them too", r.Name, l.Name, l.Limit, l.DiffersFrom))
			}
		}
	}
	return list
}
