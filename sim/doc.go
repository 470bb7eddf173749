// Package sim shows in virtual time what a fleet of callers does to a provider's
// quota under different strategies: how many requests are refused, how long the
// work takes, what the repeated sends cost, and who is left waiting.
//
// It has three parts that can be used apart from each other:
//
//   - Models of how providers enforce limits ([NewBucket], [NewRolling],
//     [NewFixed], [NewConcurrency] and the composite [Provider]). They are exact
//     and share no code with the gate, so that they can judge it.
//   - A fleet, a network and the strategies under comparison, driven by one event
//     loop. There are no goroutines and no wall clock: the same scenario and seed
//     give the same figures to the last digit.
//     What a call will use is out of the strategies' sight until it is answered.
//   - [Scenario], the file format that states all of this, and [Simulate], which
//     turns one into a [Report].
package sim
