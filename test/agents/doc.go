// Package agents tests what happens to agents across processes: one dies with what it holds, and one that is limited makes itself felt
// in others. Real programs on one file store, started and killed here.
package agents
