package scaler

// MetricName is what a trigger's metric is called.
func MetricName(t Trigger) string { return t.metricName() }

// Remembered is how many triggers and resources a server has in memory.
func Remembered(s *Server) (triggers, views int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.triggers), len(s.views)
}
