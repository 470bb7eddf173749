package pool

import (
	"testing"
	"unsafe"
)

// Records that a million agents have one of are kept to whole cache lines.
func TestRecordsKeepTheirSize(t *testing.T) {
	if n := unsafe.Sizeof(caller{}); n != 64 {
		t.Errorf("a caller takes %d bytes", n)
	}
	if n := unsafe.Sizeof(inst{}); n > 160 {
		t.Errorf("a meter takes %d bytes", n)
	}
	t.Logf("ticket %d", unsafe.Sizeof(ticket{}))
}
