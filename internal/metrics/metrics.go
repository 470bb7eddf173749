// Package metrics tells Prometheus what a gate does.
package metrics

import "github.com/prometheus/client_golang/prometheus"

// Registry is where the metrics of a gate are.
type Registry struct{ *prometheus.Registry }
