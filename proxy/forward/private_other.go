//go:build !unix

package forward

import "io/fs"

// private accepts every file where file modes mean nothing, and relies on the rights of the state directory.
func private(fs.FileInfo) error { return nil }
