//go:build linux || darwin

package clients_test

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"testing"
)

const clients = "../../clients"

func read(t *testing.T, path ...string) []byte {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(path...))
	if err != nil {
		t.Fatal(err)
	}
	return text
}

// Both clients have the same version, and each has the licence in its directory: packages take no files from above it.
func TestClientsHaveOneVersionAndTheLicence(t *testing.T) {
	t.Parallel()
	python := regexp.MustCompile(`(?m)^__version__ = "(.+)"$`).FindSubmatch(read(t, clients, "python", "sluice", "__init__.py"))
	var typescript struct{ Version string }
	if err := json.Unmarshal(read(t, clients, "typescript", "package.json"), &typescript); err != nil {
		t.Fatal(err)
	}
	if python == nil || string(python[1]) != typescript.Version {
		t.Errorf("the Python client is %s, the TypeScript client %s", python, typescript.Version)
	}
	for _, client := range []string{"python", "typescript"} {
		if !bytes.Equal(read(t, clients, client, "LICENSE"), read(t, "../..", "LICENSE")) {
			t.Errorf("clients/%s/LICENSE is not LICENSE", client)
		}
	}
}
