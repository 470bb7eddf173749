package pool

import (
	"testing"
	"unsafe"
)

// Records that each agent has are a whole number of cache lines.
func TestRecordsKeepTheirSize(t *testing.T) {
	if n := unsafe.Sizeof(caller{}); n != 64 {
		t.Errorf("a caller takes %d bytes", n)
	}
	if n := unsafe.Sizeof(inst{}); n > 160 {
		t.Errorf("a meter takes %d bytes", n)
	}
	t.Logf("ticket %d", unsafe.Sizeof(ticket{}))
}
