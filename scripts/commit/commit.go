// Package commit says which version of Sluice a checkout is, for the programs that build what is published.
package commit

import (
	"context"
	"fmt"
	"os/exec"
	"regexp"
	"strconv"
	"strings"
	"time"
)

var versionForm = regexp.MustCompile(`^v[0-9]+\.[0-9]+\.[0-9]+(-[0-9A-Za-z.-]+)?$`)

// Of returns the version of the current commit, and when it was made. stated is the version if it is not empty; otherwise it is
// the tag of the commit, or v0.0.0-REVISION.
func Of(ctx context.Context, stated string) (version string, made time.Time, err error) {
	text, err := Output(ctx, "git", "log", "-1", "--format=%ct")
	if err != nil {
		return "", made, err
	}
	seconds, err := strconv.ParseInt(text, 10, 64)
	if err != nil {
		return "", made, err
	}
	made = time.Unix(seconds, 0).UTC()
	if version = stated; version == "" {
		if version, err = Output(ctx, "git", "describe", "--tags", "--exact-match"); err != nil {
			revision, err := Output(ctx, "git", "rev-parse", "--short=12", "HEAD")
			if err != nil {
				return "", made, err
			}
			version = "v0.0.0-" + revision
		}
	}
	if !versionForm.MatchString(version) {
		return "", made, fmt.Errorf("version %q: must be like v0.1.0 or v0.1.0-rc.1", version)
	}
	return version, made, nil
}

// Output runs a program and returns what it prints.
func Output(ctx context.Context, name string, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, name, args...)
	var said strings.Builder
	cmd.Stderr = &said
	out, err := cmd.Output()
	if err != nil {
		return "", fmt.Errorf("%s %s: %w: %s", name, strings.Join(args, " "), err, strings.TrimSpace(said.String()))
	}
	return strings.TrimSpace(string(out)), nil
}
