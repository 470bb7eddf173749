// Package sim simulates, in virtual time, a fleet of callers that share a provider's quota under different strategies.
// It measures how many requests are refused, how long the work takes, what retries cost, and which classes starve.
//
// It has three parts, which can be used separately:
//
//   - Models of how providers enforce limits: [NewBucket], [NewRolling], [NewFixed], [NewConcurrency], and [Provider],
//     which combines them. They are exact and share no code with the gate, so they can check it.
//   - A fleet, a network and the strategies, driven by one event loop. There are no goroutines and no wall clock: the
//     same scenario and seed give the same figures to the last digit. Strategies do not know what a call will use until
//     its response ends.
//   - [Scenario], which describes all of this and has a file format, and [Simulate], which runs a scenario and returns
//     a [Report].
package sim
