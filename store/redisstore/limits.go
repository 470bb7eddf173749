package redisstore

import (
	"slices"

	"github.com/sluicehq/sluice/internal/pool"
	"github.com/sluicehq/sluice/store"
)

// limits translates the names of limits for the script, in whose records a limit's name is its number. It is that of one
// version of the pool's limits.
type limits struct {
	all     []store.Limit
	inForce uint16
}

// numbers are the names of limits as the script has them, until they are encoded.
var numbers = func() (list [store.MaxLimits]string) {
	for i := range list {
		list[i] = string(rune(i))
	}
	return list
}()

func limitsOf(p *pool.Pool) (l limits) {
	l.all, l.inForce = p.Limits()
	return l
}

// op returns an operation with its amounts and statements by the numbers of limits.
func (l *limits) op(op store.Op) store.Op {
	if amounts := op.Amounts; len(amounts) > 0 {
		op.Amounts = nil
		valid := len(amounts) <= store.MaxAmounts
		if op.Kind == store.OpAcquire {
			valid = valid && !slices.ContainsFunc(amounts, func(a store.Amount) bool { return a.N < 0 || a.N > store.MaxAmount })
		}
		for i := range l.all {
			if op.Kind == store.OpAcquire && l.inForce&(1<<i) == 0 {
				continue // it may have the name of another, that is in force
			}
			if n, stated := store.AmountOf(amounts, &l.all[i]); stated && valid {
				op.Amounts = append(op.Amounts, store.Amount{Limit: numbers[i], N: n})
			}
		}
		if !valid && op.Kind == store.OpAcquire {
			op.Amounts = []store.Amount{{Limit: numbers[0], N: -1}} // the script refuses it
		}
	}
	op.Observed = slices.Clone(op.Observed)
	for i := range op.Observed {
		name := op.Observed[i].Limit
		op.Observed[i].Limit = ""
		for k := range l.all {
			if l.inForce&(1<<k) != 0 && l.all[k].Name == name {
				op.Observed[i].Limit = numbers[k]
			}
		}
	}
	return op
}

// name returns the name of a limit for the script's.
func (l *limits) name(number string) string {
	if i := slices.Index(numbers[:len(l.all)], number); i >= 0 {
		return l.all[i].Name
	}
	return ""
}

// apart reports whether a limit is per agent.
func (l *limits) apart() bool {
	return slices.ContainsFunc(l.all, func(x store.Limit) bool { return x.Per&store.PerAgent != 0 })
}
