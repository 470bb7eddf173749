// Package monitor has a real Prometheus scrape a real daemon, with the alert rules and the dashboard's queries of deploy.
package monitor
