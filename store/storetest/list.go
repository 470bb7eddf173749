package storetest

import (
	"bytes"
	"context"
	"reflect"
	"testing"
	"time"

	"github.com/sluicehq/sluice/store"
)

func listing(s *suite) {
	a := per(rolling(100, time.Minute), store.PerModel)
	a.Unit, a.Burst = "tokens", 0
	s.test("a store tells which pools it has, as they were stated", spec(a, slots(7)), func(m *member) {
		lister, ok := store.As[store.Lister](m.harness.Store)
		if !ok {
			m.Skip("this store does not")
		}
		odd := spec(bucket(5, 9))
		odd.Name, odd.Classes, odd.Order = "Ein anderer: [*]?\\ (observed)", []store.Class{{Name: "only", Weight: 3}}, store.FIFO
		join(m.T, m.harness, odd)
		own := spec(plenty())
		own.Name = "(fleet)"
		join(m.T, m.harness, own)
		list := pools(m.T, lister)
		if len(list.Pools) != 2 || len(list.Skipped) != 0 {
			m.Fatalf("%+v", list)
		}
		for i, want := range []store.Spec{odd, spec(a, slots(7))} {
			got := list.Pools[i]
			if got.Name != want.Name || got.Order != want.Order || !reflect.DeepEqual(got.Limits, want.Limits) || !reflect.DeepEqual(got.Classes, want.Classes) {
				m.Errorf("%+v\nwant %+v", got, want)
			}
		}
		look := list.Pools[1]
		look.ReadOnly, look.OneShot = true, true
		p, err := m.harness.Store.Pool(context.Background(), look)
		if err != nil {
			m.Fatal(err)
		}
		if snap, err := p.Snapshot(context.Background()); err != nil || len(snap.Members) != 0 {
			m.Errorf("%+v %v", snap.Members, err)
		}
		if err := p.Close(); err != nil {
			m.Error(err)
		}
	})
	s.test("a limit that no member has any more is not listed", spec(rolling(100, time.Minute)), func(m *member) {
		lister, ok := store.As[store.Lister](m.harness.Store)
		if !ok {
			m.Skip("this store does not")
		}
		again := spec(slots(3))
		again.Limits[0].Name, again.Restate = "other", true
		join(m.T, m.harness, again)
		if list := pools(m.T, lister); len(list.Pools) != 1 || len(list.Pools[0].Limits) != 1 || list.Pools[0].Limits[0].Name != "other" {
			m.Errorf("%+v", list)
		}
	})
}

func secrets(s *suite) {
	s.test("a store keeps the first secret of each name", spec(plenty()), func(m *member) {
		keeper, ok := store.As[store.Secrets](m.harness.Store)
		if !ok {
			m.Skip("this store keeps none")
		}
		first, second := bytes.Repeat([]byte{1}, store.SecretSize), bytes.Repeat([]byte{2}, store.SecretSize)
		for _, ask := range []struct {
			name        string
			fresh, want []byte
		}{{"one", first, first}, {"one", second, first}, {"two", second, second}, {"one", second, first}} {
			got, err := keeper.Secret(context.Background(), ask.name, ask.fresh)
			if err != nil || !bytes.Equal(got, ask.want) {
				m.Errorf("%s: %x %v, want %x", ask.name, got, err, ask.want)
			}
		}
	})
}

func pools(t *testing.T, lister store.Lister) store.Listing {
	t.Helper()
	list, err := lister.Pools(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	return list
}
