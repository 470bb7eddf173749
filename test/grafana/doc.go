// Package grafana reads deploy/grafana/sluice.json with the types that Grafana generates from its own schemas of dashboards, panels and
// Prometheus queries. It is a module of its own because those types take a minute to compile.
package grafana
