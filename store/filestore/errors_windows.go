package filestore

import "golang.org/x/sys/windows"

// full lists the errors of Windows that mean a full disk.
var full = []error{windows.ERROR_DISK_FULL, windows.ERROR_HANDLE_DISK_FULL, windows.ERROR_DISK_QUOTA_EXCEEDED}

// letGo says what to do about a stopped process.
const letGo = "Let it go on, or end it with taskkill /F /PID"

// takeAway returns the command that keeps other users out of a directory.
func takeAway(path string) string {
	return `icacls "` + path + `" /inheritance:r /grant:r "%USERNAME%:(OI)(CI)F"`
}
