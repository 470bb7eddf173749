package redisstore

// seenFile remembers between processes of a machine how far pools had come.
type seenFile struct{ dir string }
