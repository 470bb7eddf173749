//go:build linux || darwin

package sdk_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"time"
)

const (
	nodeDir       = "node"
	installWithin = 5 * time.Minute
)

// install installs the clients, as the lock file says, unless they are there.
func install() error {
	for _, program := range []string{"node", "npm"} {
		if _, err := exec.LookPath(program); err != nil {
			return fmt.Errorf("%s is missing: run scripts/need-node, or set %s=1 to leave these tests out", program, offlineVar)
		}
	}
	lock, err := os.ReadFile(filepath.Join(nodeDir, "package-lock.json"))
	if err != nil {
		return err
	}
	sum := sha256.Sum256(lock)
	want := []byte(hex.EncodeToString(sum[:]) + "\n")
	mark := filepath.Join(nodeDir, "node_modules", ".installed") // the last that is written: what is half there has none
	if have, err := os.ReadFile(mark); err == nil && bytes.Equal(have, want) {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.Background(), installWithin)
	defer cancel()
	npm := exec.CommandContext(ctx, "npm", "ci", "--ignore-scripts", "--no-audit", "--no-fund")
	npm.Dir = nodeDir
	if out, err := npm.CombinedOutput(); err != nil {
		return fmt.Errorf("the official clients could not be installed: npm ci: %w\n%s\n"+
			"They come from the npm registry: connect to a network, or set %s=1 to leave these tests out", err, out, offlineVar)
	}
	return os.WriteFile(mark, want, 0o600)
}
