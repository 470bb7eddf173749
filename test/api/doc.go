// Package api holds the description of the API to tools that others use: a linter, and a fuzzer that calls a real daemon.
package api
