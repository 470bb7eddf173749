package redisrun

import "testing"

// New starts a server for a test, with lines added to its configuration, and stops it when the test ends.
func New(tb testing.TB, lines ...string) *Server {
	tb.Helper()
	return NewServer(tb, Options{Lines: lines})
}

// NewServer is New with all options.
func NewServer(tb testing.TB, opts Options) *Server {
	tb.Helper()
	s, err := Start(opts)
	if err != nil {
		tb.Fatal(err)
	}
	keep(tb, s.Stop, s)
	return s
}

// NewCluster starts a cluster of three for a test, with lines added to each configuration, and stops it when the
// test ends.
func NewCluster(tb testing.TB, lines ...string) *Cluster {
	tb.Helper()
	c, err := StartCluster(3, Options{Lines: lines})
	if err != nil {
		tb.Fatal(err)
	}
	keep(tb, c.Stop, c.nodes...)
	return c
}

// NewSentinel starts a master, its replica and their sentinels for a test, and stops them when the test ends. The
// lines are added to the configuration of master and replica.
func NewSentinel(tb testing.TB, lines ...string) *Sentinel {
	tb.Helper()
	s, err := StartSentinel(Options{Lines: lines})
	if err != nil {
		tb.Fatal(err)
	}
	keep(tb, s.Stop, append(s.Nodes(), s.sentinels...)...)
	return s
}

// NewSteadySentinel is NewSentinel for tests in which no server dies.
func NewSteadySentinel(tb testing.TB, lines ...string) *Sentinel {
	tb.Helper()
	s := NewSentinel(tb, lines...)
	if err := s.Keep(); err != nil {
		tb.Fatal(err)
	}
	return s
}

// keep stops the servers when the test ends, and logs the end of their logs if it failed.
func keep(tb testing.TB, stop func() error, servers ...*Server) {
	tb.Cleanup(func() {
		tb.Helper()
		if tb.Failed() {
			for _, s := range servers {
				tb.Logf("redis-server on %s, the end of its log:\n%s", s.Addr(), s.Log())
			}
		}
		if err := stop(); err != nil {
			tb.Error(err)
		}
	})
}
