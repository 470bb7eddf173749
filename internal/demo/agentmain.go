package demo

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"sync"
)

// Environment variables with the address and the key for an agent, named as for Anthropic's clients.
const (
	baseVariable = "ANTHROPIC_BASE_URL"
	keyVariable  = "ANTHROPIC_API_KEY"
)

// RunAgent runs an agent's process. It reads its task as a line of JSON and prints an empty [State] when it is ready.
// It starts when the next line arrives, and prints a [State] whenever it changes. It ends when all calls are done. It
// also ends when in ends, because then its parent has died.
func RunAgent(ctx context.Context, in io.Reader, out io.Writer, getenv func(string) string) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	lines := bufio.NewReaderSize(in, 4096)
	line, err := lines.ReadSlice('\n')
	if err != nil {
		return fmt.Errorf("no line says what to do: %w", err)
	}
	c := &caller{base: getenv(baseVariable), key: getenv(keyVariable)}
	if err := json.Unmarshal(line, &c.Agent); err != nil {
		return fmt.Errorf("the line with the task is invalid: %w", err)
	}
	if c.base == "" || c.Calls < 0 || c.Workers < 1 {
		return errors.New("an agent needs " + baseVariable + ", a number of calls, and workers")
	}
	transport := &http.Transport{MaxIdleConnsPerHost: c.Workers} // no proxy: everything is on this machine
	defer transport.CloseIdleConnections()
	c.client = &http.Client{Transport: transport}
	var mu sync.Mutex
	say := json.NewEncoder(out)
	tell := func(v any) {
		mu.Lock()
		defer mu.Unlock()
		if say.Encode(v) != nil { // the parent no longer reads
			cancel()
		}
	}
	tell(State{})
	if _, err := lines.ReadSlice('\n'); err != nil {
		return nil // the parent ended before the start
	}
	go func() {
		_, _ = io.Copy(io.Discard, lines)
		cancel()
	}()
	c.work(ctx, func(s State) { tell(s) })
	return nil
}
