//go:build !windows && !darwin

// On Windows and macOS Go asks the system, whatever the variables say.

package roots_test

import (
	"crypto/x509"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/sluicehq/sluice/internal/roots"
)

// rootOfTheSystem is set in a child of the test below.
const rootOfTheSystem = "ROOTS_TEST_CHILD"

// A variable that replaces the system's certificates in other programs does not in the gate. Go itself reads these
// variables once in a process, so a child tests it.
func TestTheSystemStays(t *testing.T) {
	if os.Getenv(rootOfTheSystem) == "" {
		dir := t.TempDir()
		file := write(t, filepath.Join(dir, "ca.pem"), authority(t).Certificate())
		cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestTheSystemStays$", "-test.v")
		cmd.Env = os.Environ()
		for _, name := range roots.Variables(os.Getenv) {
			cmd.Env = append(cmd.Env, name+"=")
		}
		cmd.Env = append(cmd.Env, rootOfTheSystem+"=1", "SSL_CERT_FILE="+file, "SSL_CERT_DIR="+dir)
		if out, err := cmd.CombinedOutput(); err != nil || !strings.Contains(string(out), "PASS: TestTheSystemStays") {
			t.Errorf("%v\n%s", err, out)
		}
		return
	}
	all, missing := roots.Certificates(os.Getenv)
	if len(all) < 20 || len(missing) != 0 {
		t.Fatalf("%d certificates, %v", len(all), missing)
	}
	gos, err := x509.SystemCertPool()
	if err != nil {
		t.Fatal(err)
	}
	pool := roots.New(nil, os.Getenv, func(err error) { t.Error(err) }).Pool()
	trusted, without := 0, 0
	for _, der := range all {
		cert, err := x509.ParseCertificate(der)
		if err != nil {
			continue
		}
		how := x509.VerifyOptions{CurrentTime: cert.NotAfter, KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageAny}}
		if how.Roots = pool; pool != nil {
			if _, err := cert.Verify(how); err == nil {
				trusted++
			}
		}
		how.Roots = gos
		if _, err := cert.Verify(how); err == nil {
			without++
		}
	}
	if trusted < len(all)-5 || without != 1 { // of odd certificates Go may think otherwise
		t.Errorf("of %d certificates %d are trusted, and %d by Go's own rule", len(all), trusted, without)
	}
}
