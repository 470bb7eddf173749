package pool

import (
	"encoding/binary"
	"hash/crc32"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/sluicehq/sluice/internal/tape"
)

// sealed returns bytes with the version and the checksum of a state, so that Restore looks at all of them.
func sealed(b []byte) []byte {
	b = append([]byte{stateVersion}, b...)
	return binary.LittleEndian.AppendUint32(b, crc32.Checksum(b, castagnoli))
}

// unsealed returns a state without its version and checksum.
func unsealed(b []byte) []byte { return b[1 : len(b)-4] }

// exercise restores a state, which may be anything. If that succeeds, the pool must work like any other.
func exercise(t *testing.T, b []byte, seed uint64) bool {
	t.Helper()
	p, err := Restore(b)
	if err != nil {
		return false
	}
	state := p.AppendState(nil)
	if _, err := Restore(state); err != nil {
		t.Fatalf("the state of a restored pool: %v", err)
	}
	c := &chaos{Rand: rand.New(rand.NewPCG(seed, 11)), p: p, now: p.Now()}
	c.spec = p.Stated()
	if len(p.spec.Limits) == 0 {
		return true // chaos needs one
	}
	for range 60 {
		c.drawn()
	}
	p.Fork().Snapshot(c.now)
	p.Fork().History(c.now, 0)
	if err := p.audit(); err != nil {
		t.Fatalf("after restoring: %v", err)
	}
	return true
}

// A damaged state is refused, or makes a pool that works.
func TestDamagedStatesDoNoHarm(t *testing.T) {
	tried, worked := 0, 0
	for seed := range tape.Seeds(t, 25) {
		c := newHashed(t, seed)
		for range 20 + c.IntN(200) {
			c.drawn()
		}
		state := unsealed(c.p.AppendState(nil))
		for range 200 {
			b := slices.Clone(state)
			for range 1 + c.IntN(3) {
				switch i := c.IntN(len(b)); c.IntN(4) {
				case 0:
					b[i] = byte(c.Uint32())
				case 1:
					b[i] ^= 1 << c.IntN(8)
				case 2:
					b[i]++
				case 3:
					b = slices.Delete(b, i, i+1)
					if k := c.IntN(len(b)); c.IntN(2) == 0 {
						b = slices.Insert(b, k, byte(c.Uint32()))
					}
				}
			}
			tried++
			if exercise(t, sealed(b), c.Uint64()) {
				worked++
			}
		}
	}
	t.Logf("%d of %d made a pool", worked, tried)
	if worked == 0 {
		t.Error("no damaged state made a pool: nothing was tried")
	}
}

func FuzzRestore(f *testing.F) {
	for seed := range uint64(8) {
		c, err := newChaos(seed)
		if err != nil {
			f.Fatal(err)
		}
		for range 60 {
			c.drawn()
		}
		f.Add(unsealed(c.p.AppendState(nil)), seed)
	}
	f.Fuzz(func(t *testing.T, b []byte, seed uint64) { exercise(t, sealed(b), seed) })
}
