//go:build !windows

package filestore

// full are further errors about a disk without room.
var full []error

// letGo is what to do about a process that has stopped.
const letGo = "Let it go on with kill -CONT, or end it with kill -KILL"

// takeAway is how a user keeps others out of a directory.
func takeAway(path string) string { return "chmod go-w " + path }
