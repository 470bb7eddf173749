package filestore

import "golang.org/x/sys/windows"

// full are what Windows says of a disk without room.
var full = []error{windows.ERROR_DISK_FULL, windows.ERROR_HANDLE_DISK_FULL, windows.ERROR_DISK_QUOTA_EXCEEDED}

// letGo is what to do about a process that has stopped.
const letGo = "Let it go on, or end it with taskkill /F /PID"

// takeAway is how a user keeps others out of a directory.
func takeAway(path string) string {
	return `icacls "` + path + `" /inheritance:r /grant:r "%USERNAME%:(OI)(CI)F"`
}
