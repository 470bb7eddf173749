package config

import (
	"errors"
	"flag"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "write the expected messages and the schema anew")

// environment is the environment of the files in testdata.
func environment(name string) (string, bool) {
	value, set := map[string]string{
		"REDIS_PASSWORD": "s3cret:%2F%3F%23[]@word", "TTL": "90s", "EMPTY": "", "LIMIT": "80/min", "SECRET": "hunter2", "USERNAME": "me",
		"WEBHOOK": "https://hooks.example.com/services/hunter2", "SHARE": "30%", "WAITING": "500", "MODE": "observe", "DOLLAR": "a$b${c}",
	}[name]
	return value, set
}

func files(t testing.TB, dir string) []string {
	t.Helper()
	all, err := filepath.Glob(filepath.Join("testdata", dir, "*.yaml"))
	if err != nil || len(all) == 0 {
		t.Fatalf("no files in %s: %v", dir, err)
	}
	return all
}

func read(t testing.TB, file string) []byte {
	t.Helper()
	src, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return src
}

func parse(t testing.TB, src string) *File {
	t.Helper()
	f, err := Parse("test.yaml", []byte(src), environment)
	if err != nil {
		t.Fatalf("%s\n%v", src, err)
	}
	return f
}

// Each file in testdata/bad has a mistake; the file beside it holds the expected message.
func TestMessages(t *testing.T) {
	t.Parallel()
	for _, file := range files(t, "bad") {
		t.Run(filepath.Base(file), func(t *testing.T) {
			t.Parallel()
			_, err := Parse(filepath.Base(file), read(t, file), environment)
			var bad *ParseError
			if !errors.As(err, &bad) {
				t.Fatalf("got %v, want a ParseError", err)
			}
			got := spoken(err)
			golden := strings.TrimSuffix(file, ".yaml") + ".txt"
			if *update {
				if err := os.WriteFile(golden, []byte(got), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			if want := string(read(t, golden)); got != want {
				t.Errorf("got:\n%s\nwant:\n%s", got, want)
			}
		})
	}
}

// spoken returns an error as a user sees it.
func spoken(err error) string {
	var all Errors
	var one *ParseError
	if !errors.As(err, &all) && errors.As(err, &one) {
		all = Errors{one}
	}
	var b strings.Builder
	for _, pe := range all {
		b.WriteString(pe.Error() + "\n" + pe.Excerpt + "\n")
	}
	return b.String()
}

// The printed configuration parses to the same configuration, and prints the same again.
func TestRoundTrip(t *testing.T) {
	t.Parallel()
	for _, file := range files(t, "good") {
		t.Run(filepath.Base(file), func(t *testing.T) {
			t.Parallel()
			f, err := Parse(file, read(t, file), environment)
			if err != nil {
				t.Fatal(spoken(err))
			}
			roundTrip(t, f)
		})
	}
}

func roundTrip(t testing.TB, f *File) {
	t.Helper()
	printed, err := f.YAML()
	if err != nil {
		t.Fatal(err)
	}
	again, err := Parse("printed.yaml", printed, environment)
	if err != nil {
		t.Fatalf("%s\n%s", printed, spoken(err))
	}
	f.ca, again.ca = nil, nil // lines of two files
	if !reflect.DeepEqual(f, again) {
		t.Fatalf("%s\nreads as\n%+v\nwant\n%+v", printed, again, f)
	}
	if twice, _ := again.YAML(); string(twice) != string(printed) {
		t.Fatalf("printed\n%s\nand then\n%s", printed, twice)
	}
}
