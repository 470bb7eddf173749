package api

import (
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"
)

// sending holds the exchanges that have not ended.
type sending struct {
	mu   sync.Mutex
	all  map[string]*exchange
	held int64                // bytes of the JSON that exchanges began with
	back map[string]time.Time // when exchanges that had not begun were given back, by owner and id
}

// hold takes memory for the JSON of an exchange. free gives it back.
func (s *sending) hold(n int64, bounded bool) (free func(), err error) {
	if n < 0 {
		n = maxExchange // its length is not known
	}
	if n < smallHeld {
		return func() {}, nil
	}
	most := int64(maxHeld)
	if bounded {
		most -= maxHeld / 4
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.held+n > most {
		return nil, &Problem{Status: http.StatusTooManyRequests, Detail: "the bodies of exchanges fill the memory that they may take", Hint: "try again when some have ended", Why: "concurrency"}
	}
	s.held += n
	return sync.OnceFunc(func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.held -= n
	}), nil
}

var (
	errTaken     = &Problem{Status: http.StatusConflict, Detail: "exchange: an exchange with this id goes on", Hint: "choose a random id for each exchange"}
	errGivenBack = &Problem{Status: http.StatusConflict, Detail: "the exchange was given back", Hint: "begin another one"}
)

// add records an exchange, unless its id is taken, it was given back, or a bounded token has too many.
func (s *sending) add(x *exchange) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.all == nil {
		s.all = map[string]*exchange{}
	}
	if s.all[x.id] != nil {
		return errTaken
	}
	if at, ok := s.back[x.owner+" "+x.id]; ok && time.Since(at) < givenBackFor {
		return errGivenBack
	}
	if x.bound {
		n := 0
		for _, o := range s.all {
			if o.owner == x.owner {
				n++
			}
		}
		if n >= maxExchanges {
			return &Problem{Status: http.StatusTooManyRequests, Detail: fmt.Sprintf("the token has %d exchanges that have not ended", maxExchanges), Hint: "end exchanges, or wait", Why: "concurrency"}
		}
	}
	s.all[x.id] = x
	return nil
}

// giveBack remembers that an exchange is not to begin: its client has left, and what it sent last may arrive first.
func (s *sending) giveBack(owner, id string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !isExchangeID(id) || s.all[id] != nil {
		return
	}
	if len(s.back) >= maxGivenBack {
		maps.DeleteFunc(s.back, func(_ string, at time.Time) bool { return time.Since(at) >= givenBackFor })
	}
	if s.back == nil {
		s.back = map[string]time.Time{}
	}
	if len(s.back) < maxGivenBack {
		s.back[owner+" "+id] = time.Now()
	}
}

// isExchangeID reports whether a client may choose an id.
func isExchangeID(id string) bool {
	return len(id) >= 16 && len(id) <= 64 && strings.Trim(id, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_") == ""
}

func (s *sending) remove(id string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.all, id)
}

func (s *sending) find(id string) *exchange {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.all[id]
}

// EndExchanges ends all exchanges, as if their clients had left. Call it when no client can report any more.
func (a *API) EndExchanges() {
	a.sending.mu.Lock()
	all := slices.Collect(maps.Values(a.sending.all))
	a.sending.mu.Unlock()
	for _, x := range all {
		x.cancel(errSilent)
	}
	for _, x := range all {
		<-x.over
	}
}
