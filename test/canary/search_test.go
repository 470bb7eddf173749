//go:build linux

package canary_test

import (
	"bytes"
	"compress/gzip"
	"encoding/base64"
	"encoding/hex"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// mark begins every planted secret. It looks like no provider's key: a filter that knows the form of keys must not be
// the only thing that keeps it out.
const mark = "C4NARY"

// planted returns the secret of a place.
func planted(place string) string { return mark + place }

// forms are the ways in which a secret may be written.
var forms = regexp.MustCompile(`(?i)` + mark + `[A-Za-z0-9]*|` + strings.Join(inBase64(mark), "|") + `|` + hex.EncodeToString([]byte(mark)))

// inBase64 returns what stays the same of a text in base64, for each of the three places where it can begin.
func inBase64(text string) (all []string) {
	for before := range 3 {
		coded := base64.StdEncoding.EncodeToString([]byte(strings.Repeat("\x00", before) + text))
		all = append(all, coded[(before*8+5)/6:(before+len(text))*8/6]) // letters and digits
	}
	return all
}

// suspect reports whether a text may hold a secret. It is much faster than forms.
func suspect(text []byte) bool {
	lower := bytes.ToLower(text)
	for _, form := range append(inBase64(mark), mark, hex.EncodeToString([]byte(mark))) {
		if bytes.Contains(lower, []byte(strings.ToLower(form))) {
			return true
		}
	}
	return false
}

// find returns the secrets in a text, also in what is compressed.
func find(text []byte) (found []string) {
	if suspect(text) {
		for _, f := range forms.FindAll(text, -1) {
			found = append(found, string(f))
		}
	}
	if z, err := gzip.NewReader(bytes.NewReader(text)); err == nil {
		plain, _ := io.ReadAll(io.LimitReader(z, 64<<20)) // what can be read is searched
		found = append(found, find(plain)...)
	}
	slices.Sort(found)
	return slices.Compact(found)
}

// findIn returns the secrets in the files and file names below a directory, by file, and how many files it read.
func findIn(t *testing.T, dir string, skip ...string) (found map[string][]string, files int) {
	t.Helper()
	found = map[string][]string{}
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || slices.Contains(skip, path) {
			return err
		}
		name := path[len(dir):]
		in := find([]byte(name))
		if d.Type().IsRegular() {
			text, err := os.ReadFile(path)
			if err != nil {
				return err
			}
			files++
			in = append(in, find(text)...)
		}
		if len(in) > 0 {
			found[name] = in
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return found, files
}

// The search finds a secret in every form, or it would prove nothing.
func TestSearchFindsEveryForm(t *testing.T) {
	secret := planted("here")
	var zipped bytes.Buffer
	z := gzip.NewWriter(&zipped)
	if _, err := z.Write([]byte("x " + secret)); err != nil || z.Close() != nil {
		t.Fatal("gzip fails")
	}
	for name, text := range map[string]string{
		"plain": "key=" + secret + "&x", "lower case": strings.ToLower(secret), "hexadecimal": hex.EncodeToString([]byte(secret)), "compressed": zipped.String(), "cut": secret[:8],
		"base64 at 0": base64.StdEncoding.EncodeToString([]byte(secret)), "base64 at 1": base64.StdEncoding.EncodeToString([]byte(":" + secret)),
		"base64 at 2": base64.RawURLEncoding.EncodeToString([]byte("u:" + secret)),
	} {
		if len(find([]byte(text))) == 0 {
			t.Errorf("%s: nothing is found in %q", name, text)
		}
	}
	if got := find([]byte("no secret is here: canary, QzRO, 4334")); len(got) > 0 {
		t.Errorf("found %q", got)
	}
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "a-"+secret), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if got, files := findIn(t, dir); len(got) != 1 || files != 1 {
		t.Errorf("in the name of a file: %v of %d", got, files)
	}
}
