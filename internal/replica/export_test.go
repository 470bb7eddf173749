package replica

import (
	"encoding/binary"
	"hash/crc32"
)

// Seal gives a snapshot the right checksums, so that fuzzing gets past them.
func Seal(snapshot []byte) []byte {
	b := append([]byte(nil), snapshot...)
	if len(b) < 4 {
		return b
	}
	binary.LittleEndian.PutUint32(b[len(b)-4:], crc32.Checksum(b[:len(b)-4], castagnoli))
	return b
}
