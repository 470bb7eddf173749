// Package envoy runs a real Envoy that asks two gates on one Redis before it lets requests through: with -tags slow.
package envoy
