package fleet_test

import (
	"fmt"
	"os"
	"testing"
	"time"
)

// idleTime is how long the processors have had nothing to do since the machine was started, all together.
func idleTime(t *testing.T) time.Duration {
	t.Helper()
	text, err := os.ReadFile("/proc/stat")
	if err != nil {
		t.Fatal(err)
	}
	var user, nice, system, idle, disk int64 // in hundredths of a second, by the kernel's word to programs
	if _, err := fmt.Sscanf(string(text), "cpu %d %d %d %d %d", &user, &nice, &system, &idle, &disk); err != nil {
		t.Fatal(err)
	}
	return time.Duration(idle+disk) * 10 * time.Millisecond
}
