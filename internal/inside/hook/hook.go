// Package hook is where package sluice leaves what [inside] finds: it cannot be a method of the gate, which everybody sees.
package hook

// Of returns the inner side of a *sluice.Gate. Package sluice sets it.
var Of func(gate any) any
