// Package windows tests the sluice program on Windows: commands that are run, killed and interrupted, processes that share a file
// store, and the daemon. Elsewhere it has no tests; make windows runs them under Wine.
package windows
