package main

import (
	"errors"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"github.com/sluicehq/sluice/config"
	"github.com/sluicehq/sluice/internal/statedir"
	"github.com/sluicehq/sluice/internal/storeurl"
	"github.com/sluicehq/sluice/store"
	"github.com/sluicehq/sluice/store/remotestore"
)

// stateHome is where state lives: the store, and the directory of this machine's own files.
type stateHome struct {
	url   string
	dir   string // empty if the user has none
	whose string // where url comes from: --store, SLUICE_STORE, or the field store of the configuration
	code  int    // exit code if url is invalid
}

// label names the store in the event log, which other stores write to as well.
func (at stateHome) label() string { return storeurl.Label(at.url) }

// isMissing reports whether the store is a directory that does not exist.
func (at stateHome) isMissing() bool {
	if !strings.HasPrefix(at.url, "file:") {
		return false
	}
	_, err := os.Lstat(at.dir)
	return errors.Is(err, os.ErrNotExist)
}

const storeHint = "file: is a directory of the user's, file:PATH another one, redis://HOST:6379 a Redis that many machines share, http://HOST:7979 a daemon, mem: the memory of this process"

// placeOf finds the store: from the flag, else the environment, else the configuration.
func placeOf(cmd *cobra.Command, f *config.File) (stateHome, error) {
	flag, _ := cmd.Flags().GetString("store")
	url, whose, code := flag, "--store", exitUsage
	if url == "" {
		url, whose = os.Getenv("SLUICE_STORE"), "SLUICE_STORE"
	}
	if url == "" {
		url, whose, code = f.Store, "store", exitConfig
	}
	bad := func(err error) (stateHome, error) {
		// The URL is not shown: it may hold a password.
		return stateHome{}, &failure{code: code, message: whose + ": " + err.Error(), hint: storeHint}
	}
	scheme, rest, err := storeurl.Split(url)
	if err != nil {
		return bad(err)
	}
	if scheme == "file" && rest != "" {
		dir, err := filepath.Abs(rest)
		if err != nil {
			return bad(err)
		}
		return stateHome{"file:" + dir, dir, whose, code}, nil
	}
	dir, err := statedir.Default()
	if scheme != "file" {
		return stateHome{url, dir, whose, code}, nil
	}
	if err != nil {
		return stateHome{}, &failure{
			code: exitUnavailable, message: "no directory for the store: " + err.Error(), hint: "set HOME or XDG_STATE_HOME, or give --store file:PATH",
		}
	}
	return stateHome{"file:" + dir, dir, whose, code}, nil
}

// configOf returns the configuration: the named file, else that of the daemon whose store is used, else the defaults.
func configOf(cmd *cobra.Command) (*config.File, error) {
	if name := configName(cmd, nil); name != "" {
		return loadConfig(name)
	}
	f := config.Default()
	at, err := placeOf(cmd, f)
	if err != nil || !strings.HasPrefix(at.url, "http") {
		return f, err
	}
	text, err := remotestore.Config(cmd.Context(), at.url)
	if err != nil {
		failed := asFailure(fail(err))
		if failed.code = exitUnavailable; !errors.Is(err, store.ErrUnavailable) { // the store was not even contacted
			failed.code, failed.message, failed.hint = at.code, at.whose+": "+failed.message, storeHint
		}
		return nil, failed
	}
	if f, err = config.Parse("the configuration of the daemon", text, func(string) (string, bool) { return "", false }); err != nil {
		return nil, configFailure(err)
	}
	return f, nil
}
