package storeapi

import (
	"context"
	"encoding/json"
	"net/http"

	"github.com/sluicehq/sluice/daemon/api"
	"github.com/sluicehq/sluice/internal/ledger"
	"github.com/sluicehq/sluice/store/remotestore/wire"
)

// Bounds on one request to the ledger.
const (
	maxLines = 1024
	maxPots  = 4096
)

// lendBooks serves the daemon's ledger.
func (s *Server) lendBooks() {
	booked(s, "POST /v1/store/books/take", func(ctx context.Context, o *ledger.Order) (any, error) {
		if len(o.Lines) > maxLines {
			return nil, tooMany("lines")
		}
		return s.Books.Take(ctx, *o)
	})
	booked(s, "POST /v1/store/books/settle", func(ctx context.Context, q *wire.Settle) (any, error) {
		return nil, s.Books.Settle(ctx, q.Receipt, q.Actual, q.Now)
	})
	booked(s, "POST /v1/store/books/cancel", func(ctx context.Context, q *wire.Settle) (any, error) {
		return nil, s.Books.Cancel(ctx, q.Receipt, q.Now)
	})
	booked(s, "POST /v1/store/books/tell", func(ctx context.Context, q *wire.Tell) (any, error) {
		first, err := s.Books.Tell(ctx, q.Line, q.Now)
		return wire.Told{First: first}, err
	})
	booked(s, "POST /v1/store/books/read", func(ctx context.Context, q *wire.Read) (any, error) {
		if len(q.Pots) > maxPots {
			return nil, tooMany("pots")
		}
		all, err := s.Books.Read(ctx, q.Pots)
		return wire.Balances{Balances: all}, err
	})
}

func tooMany(what string) error {
	return &api.Problem{Status: http.StatusBadRequest, Detail: what + ": there are too many"}
}

// booked serves one operation on the ledger. Once the request has arrived it is carried out, whether or not the caller
// is still there.
func booked[T any](s *Server, pattern string, f func(ctx context.Context, q *T) (any, error)) {
	s.handle(pattern, func(w http.ResponseWriter, r *http.Request, _ api.Identity) error {
		if s.Books == nil {
			return &api.Problem{Status: http.StatusNotFound, Detail: "the budgets of this daemon are in its store"}
		}
		var q T
		d := json.NewDecoder(r.Body)
		d.DisallowUnknownFields()
		if err := d.Decode(&q); err != nil {
			return badBody(err)
		}
		answer, err := f(context.WithoutCancel(r.Context()), &q)
		switch {
		case err != nil:
			return err
		case answer == nil:
			w.WriteHeader(http.StatusNoContent)
			return nil
		}
		return reply(w, answer)
	})
}
