//go:build slow && linux

package install

import (
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/sluicehq/sluice/internal/proctest"
)

// The image runs without root, on a read-only file system, and reports that it is healthy. Its state survives it in the volume.
func TestImage(t *testing.T) {
	dir := clone(t, "clone")
	const image, volume = "localhost/sluice-install-test", "sluice-install-test"
	do(t, dir, "make", "image", "PODMAN=podman --runtime /usr/sbin/runc", "IMAGE="+image)
	t.Cleanup(func() {
		_ = exec.Command("podman", "rmi", "-f", image).Run()
		_ = exec.Command("podman", "volume", "rm", "-f", volume).Run()
	})
	options := append([]string{"--network", "none", "--read-only"}, limits...)
	if said := podman(t, append(append([]string{"run", "--rm"}, options...), image, "version")...); !strings.Contains(said, "sluice v") {
		t.Errorf("it says %q", said)
	}
	const name = "sluice-install-test"
	t.Cleanup(func() { _ = exec.Command("podman", "rm", "-f", "-t", "1", name).Run() })
	for _, run := range []string{"the first", "the second"} { // with a volume that is new, and one that is in use
		podman(t, append(append([]string{"run", "-d", "--name", name, "-v", volume + ":/state"}, options...), image)...)
		healthy := func() error {
			_, err := attempt(t.Context(), ".", nil, "podman", "--runtime", "/usr/sbin/runc", "healthcheck", "run", name)
			return err
		}
		for end := time.Now().Add(proctest.Patience); healthy() != nil; time.Sleep(200 * time.Millisecond) {
			if time.Now().After(end) {
				t.Fatalf("%s is not healthy after %v:\n%s", run, proctest.Patience, podman(t, "logs", name))
			}
		}
		podman(t, "exec", name, "/sluice", "acquire", "github")
		if user := strings.TrimSpace(podman(t, "inspect", "--format", "{{.Config.User}}", name)); user != "65532:65532" {
			t.Errorf("%s runs as %q", run, user)
		}
		if id := strings.Fields(podman(t, "top", name, "huser", "user"))[2]; id == "root" || id == "0" {
			t.Errorf("the process of %s is of %s", run, id)
		}
		podman(t, "stop", "-t", "30", name)
		if code := strings.TrimSpace(podman(t, "inspect", "--format", "{{.State.ExitCode}}", name)); code != "0" {
			t.Errorf("%s ends with %s:\n%s", run, code, podman(t, "logs", name))
		}
		podman(t, "rm", name)
	}
}
