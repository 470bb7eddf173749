// Package matrix runs real clients of providers through the gate, unchanged and at their current versions: make clients.
package matrix
