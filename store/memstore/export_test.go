package memstore

// WithFastPath is for tests: the fast path must decide the same as the normal one.
func WithFastPath() Option { return withFastPath() }
