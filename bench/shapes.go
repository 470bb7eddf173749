package main

import (
	"fmt"
	"math/rand/v2"
)

// Names that the bars use.
const (
	nameSluice   = "sluice"
	nameXTime    = "x/time/rate"
	nameSethvar  = "sethvargo/go-limiter"
	shapeHot1    = "hot key, 1 thread"
	shapeHot2    = "hot key, 2 threads"
	shapeKeys    = "100,000 keys, 1 thread"
	shapeFour    = "4 limits at once, 1 thread"
	manyKeys     = 100_000
	wideOpen     = 1_000_000_000 // per second: nothing ever waits
	fourLimits   = 4
	keyOrderSeed = 1
)

// contender is one limiter in one shape. take reports whether it let the key pass.
type contender struct {
	name  string
	build func(keys []string) (take func(key string) bool, done func(), err error)
}

type shape struct {
	name       string
	threads    int
	keys       int
	contenders []contender
}

func shapes() []shape {
	return []shape{
		{shapeHot1, 1, 1, single},
		{shapeHot2, 2, 1, single},
		{shapeKeys, 1, manyKeys, keyed},
		{shapeFour, 1, 1, four},
	}
}

// keyNames returns n names in an order that defeats prefetching, because real callers do not come sorted. The order is
// the same for all contenders.
func keyNames(n int) []string {
	names := make([]string, n)
	for i := range names {
		names[i] = fmt.Sprintf("agent-%06d", i)
	}
	rng := rand.New(rand.NewPCG(keyOrderSeed, keyOrderSeed))
	rng.Shuffle(n, func(i, j int) { names[i], names[j] = names[j], names[i] })
	return names
}
