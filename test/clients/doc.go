// Package clients runs the tests of the clients in Python and TypeScript against real daemons.
package clients
