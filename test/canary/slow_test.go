//go:build linux && slow

package canary_test

// thorough runs every command, and the daemon on Redis too.
const thorough = true
