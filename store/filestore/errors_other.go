//go:build !windows

package filestore

// full lists further errors that mean a full disk.
var full []error

// letGo says what to do about a stopped process.
const letGo = "Let it go on with kill -CONT, or end it with kill -KILL"

// takeAway returns the command that keeps other users out of a directory.
func takeAway(path string) string { return "chmod go-w " + path }
