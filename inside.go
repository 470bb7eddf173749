package sluice

import "github.com/sluicehq/sluice/internal/inside/hook"

// inside is the side of a gate that only this module sees, through package internal/inside.
type inside struct{ *Gate }

func init() {
	hook.Of = func(gate any) any { return inside{gate.(*Gate)} }
}
