package scaler

// MetricName returns the name of a trigger's metric.
func MetricName(t Trigger) string { return t.metricName() }

// Remembered returns how many triggers and resources a server has in memory.
func Remembered(s *Server) (triggers, views int) {
	from := s.source.Load()
	s.mu.Lock()
	defer s.mu.Unlock()
	from.mu.Lock()
	defer from.mu.Unlock()
	return len(s.triggers), len(from.views)
}

// Hold keeps calls from reading a resource until release is called.
func Hold(s *Server, resource string) (release func()) {
	v := s.source.Load().view(resource)
	v.lock <- struct{}{}
	return func() { <-v.lock }
}
