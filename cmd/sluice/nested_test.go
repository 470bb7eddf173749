//go:build unix

package main

import (
	"crypto/sha256"
	"encoding/hex"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// A nested run on the store of a daemon with tokens gets the token only with --pass-token, whether the token is in a
// variable or in the store's address. Without it the inner run says what is missing.
func TestNestedRunNeedsPassToken(t *testing.T) {
	t.Parallel()
	sum := sha256.Sum256([]byte("s3cr3t"))
	file := filepath.Join(t.TempDir(), "sluice.yaml")
	if err := os.WriteFile(file, []byte("resources: {api: {limits: [{concurrency: 5, name: inflight}]}}\ntokens: [{name: a, hash: "+hex.EncodeToString(sum[:])+"}]\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	_, urls := listening(t, "--config", file, "--listen", "127.0.0.1:0")
	inAddress := strings.Replace(urls[0], "http://", "http://:s3cr3t@", 1)
	for _, env := range [][]string{{"SLUICE_STORE=" + urls[0], "SLUICE_TOKEN=s3cr3t"}, {"SLUICE_STORE=" + inAddress}} {
		p := start(t, env, "run", "--no-gate", "--pass-token", "--", "sluice", "run", "--no-gate", "--", "echo", "ran")
		p.says("ran")
		p.ends(exitOK)
		p = start(t, env, "run", "--no-gate", "--", "sluice", "run", "--no-gate", "--", "echo", "ran")
		p.warns("--pass-token")
		p.ends(exitUnavailable)
		p = start(t, env, "run", "--no-gate", "--", "sh", "-c", "env | grep -c s3cr3t")
		p.says("0")
		p.ends(1)
	}
}
