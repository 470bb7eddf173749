//go:build linux || darwin

package filestore_test

import (
	"context"
	"os"
	"path/filepath"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/sluicehq/sluice/store"
	"github.com/sluicehq/sluice/store/filestore"
)

// BenchmarkBareLock is the lower bound: the lock, and 256 bytes of a mapped file.
func BenchmarkBareLock(b *testing.B) {
	f, err := os.Create(filepath.Join(b.TempDir(), "bare"))
	if err != nil {
		b.Fatal(err)
	}
	defer f.Close()
	if err := f.Truncate(4096); err != nil {
		b.Fatal(err)
	}
	mem, err := unix.Mmap(int(f.Fd()), 0, 4096, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
	if err != nil {
		b.Fatal(err)
	}
	defer unix.Munmap(mem)
	fd := int(f.Fd())
	for b.Loop() {
		if err := unix.Flock(fd, unix.LOCK_EX); err != nil {
			b.Fatal(err)
		}
		for i := range 256 {
			mem[i]++
		}
		if err := unix.Flock(fd, unix.LOCK_UN); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkAcquire(b *testing.B) {
	for _, closes := range []bool{false, true} {
		name := "acquire"
		if closes {
			name = "acquire and close"
		}
		b.Run(name, func(b *testing.B) {
			s, err := filestore.Open(b.TempDir())
			if err != nil {
				b.Fatal(err)
			}
			defer s.Close()
			ctx := context.Background()
			p, err := s.Pool(ctx, fourLimits())
			if err != nil {
				b.Fatal(err)
			}
			var ops, done [1]store.Op
			ops[0] = store.Op{Kind: store.OpAcquire, Agent: "agent", TTL: time.Second}
			ops[0].Amounts = []store.Amount{{Unit: "requests", N: 1}, {Unit: "tokens", N: 1000}}
			b.ReportAllocs()
			for b.Loop() {
				ops[0].ID = store.ID{}
				if err := p.Apply(ctx, ops[:]); err != nil || ops[0].Result.State != store.Granted {
					b.Fatal(err, ops[0].Result)
				}
				if closes {
					done[0] = store.Op{Kind: store.OpClose, ID: ops[0].ID}
					if err := p.Apply(ctx, done[:]); err != nil {
						b.Fatal(err)
					}
				}
			}
		})
	}
}
