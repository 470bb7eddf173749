//go:build slow && linux

package matrix_test

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"github.com/goccy/go-yaml"

	"github.com/sluicehq/sluice/internal/clients"
)

// keep writes results, over those of the same set-ups, into results.yaml, docs/clients-table.md and the table of clients. Two runs of
// make clients at a time wait for each other here.
func keep(results []result) error {
	base, err := cache()
	if err != nil {
		return err
	}
	lock, err := os.OpenFile(filepath.Join(base, "results.lock"), os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return err
	}
	defer func() { _ = lock.Close() }() // which unlocks it
	if err := syscall.Flock(int(lock.Fd()), syscall.LOCK_EX); err != nil {
		return err
	}
	was, err := kept()
	if err != nil && !os.IsNotExist(err) {
		return err
	}
	all := slices.Clone(results)
	for _, old := range was {
		if !slices.ContainsFunc(results, func(r result) bool { return r.Name == old.Name && r.Provider == old.Provider }) {
			all = append(all, old)
		}
	}
	slices.SortFunc(all, order)
	text, err := yaml.Marshal(all)
	if err != nil {
		return err
	}
	if err := replace(resultsFile, "# What make clients saw last.\n"+string(text)); err != nil {
		return err
	}
	page, err := os.ReadFile(pagePath)
	if err != nil {
		return err
	}
	with, err := withResults(string(page), all)
	if err != nil {
		return err
	}
	if err := replace(pagePath, with); err != nil {
		return err
	}
	for _, r := range results {
		if c := clients.Builtin().Find(r.Client); c != nil {
			if err := keepTested(c, all); err != nil {
				return err
			}
		}
	}
	return nil
}

// replace writes a file anew, unless it says the same. Readers find the old one or the new one.
func replace(file, text string) error {
	if was, err := os.ReadFile(file); err == nil && string(was) == text {
		return nil
	}
	if err := os.WriteFile(file+".new", []byte(text), 0o644); err != nil {
		return err
	}
	return os.Rename(file+".new", file)
}

// keepTested writes the versions with which a client passed in all ways into its file.
func keepTested(c *clients.Client, all []result) error {
	failed := map[string]bool{}
	var tested []string
	for _, r := range all {
		if r.Client == c.Name && (len(r.Failed) > 0 || r.Untested != "") {
			failed[r.Package] = true
		}
	}
	for _, r := range all {
		version := r.Version
		if manager, _, _ := strings.Cut(r.Package, " "); c.Kind == clients.Library {
			version = manager + " " + version
		}
		if line := fmt.Sprintf("{version: %q, date: %s}", version, r.Date); r.Client == c.Name && !failed[r.Package] && !slices.Contains(tested, line) {
			tested = append(tested, line)
		}
	}
	file := filepath.Join("..", "..", "internal", "clients", "table", c.Name+".yaml")
	was, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	var lines []string
	for line := range strings.Lines(string(was)) {
		if !strings.HasPrefix(line, "tested:") {
			lines = append(lines, line)
		}
	}
	if len(tested) > 0 {
		lines = append(lines, "tested: ["+strings.Join(tested, ", ")+"]\n")
	}
	return replace(file, strings.Join(lines, ""))
}
