package sluice

import "github.com/sluicehq/sluice/internal/inside/hook"

// inside has the methods of a gate that only this module can use, through package internal/inside.
type inside struct{ *Gate }

func init() {
	hook.Of = func(gate any) any { return inside{gate.(*Gate)} }
}
