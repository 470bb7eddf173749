// Package sdk holds tests of the official clients: they run unmodified through sluice serve and sluice run, against
// sluice mock. docs/sdks.md tells what they may see that the provider did not send.
package sdk
