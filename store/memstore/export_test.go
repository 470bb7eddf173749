package memstore

// WithFastPath is for tests: the fast path decides as the long way does.
func WithFastPath() Option { return withFastPath() }
