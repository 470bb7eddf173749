package main

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

const installWithin = 15 * time.Minute

// install installs the peers in the versions of the lock files, unless they are installed already. It returns the
// directory of the programs from PyPI.
func install(ctx context.Context, cache string) (programs string, err error) {
	ctx, cancel := context.WithTimeout(ctx, installWithin)
	defer cancel()
	cache, err = filepath.Abs(cache)
	if err != nil {
		return "", err
	}
	if err := os.MkdirAll(cache, 0o755); err != nil {
		return "", err
	}
	venv := filepath.Join(cache, "python")
	programs = filepath.Join(venv, "bin")
	err = once("node/package-lock.json", filepath.Join(cache, "node.installed"), func() error {
		return command(ctx, "node", "npm", "ci", "--ignore-scripts", "--no-audit", "--no-fund")
	})
	if err != nil {
		return "", fmt.Errorf("the peers from npm: %w", err)
	}
	err = once("python/requirements.txt", filepath.Join(cache, "python.installed"), func() error {
		if err := command(ctx, "", "python3", "-m", "venv", "--clear", venv); err != nil {
			return err
		}
		return command(ctx, "", filepath.Join(programs, "pip"), "install", "-q", "--disable-pip-version-check", "--no-deps", "-r", "python/requirements.txt")
	})
	if err != nil {
		return "", fmt.Errorf("the peers from PyPI: %w", err)
	}
	return programs, nil
}

// once calls do unless it has already succeeded with the same lock file. The file mark records that.
func once(lock, mark string, do func() error) error {
	text, err := os.ReadFile(lock)
	if err != nil {
		return err
	}
	sum := sha256.Sum256(text)
	want := []byte(hex.EncodeToString(sum[:]) + "\n")
	if have, err := os.ReadFile(mark); err == nil && bytes.Equal(have, want) {
		return nil
	}
	if err := do(); err != nil {
		return err
	}
	return os.WriteFile(mark, want, 0o600)
}

func command(ctx context.Context, dir, program string, args ...string) error {
	cmd := exec.CommandContext(ctx, program, args...)
	cmd.Dir = dir
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("%s %s: %w\n%s\nhint: node 18 with npm and Python 3 with venv are needed, and a network for what is not installed yet", filepath.Base(program), args[0], err, tail(string(out)))
	}
	return nil
}
