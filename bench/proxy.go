package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
	"slices"
	"sync"
	"time"
)

// ProxyRow is the cost of a proxy. The provider and the clients run in this process too, so the rates include their
// cost.
type ProxyRow struct {
	Name        string  `json:"name"`
	Connections int     `json:"connections"`
	Rate        float64 `json:"requests_per_s"`
	Best        float64 `json:"best_requests_per_s"`
	P50         float64 `json:"p50_us"`
	P99         float64 `json:"p99_us"`
	// First is the median time to the first byte of a streamed response.
	First float64 `json:"first_byte_us"`
	// CPU is the processor time of a request. Load on the machine moves it less than the rate.
	CPU   float64 `json:"cpu_us"`
	Ratio float64 `json:"ratio"` // rate compared with the plain proxy's
}

const (
	nameDirect    = "direct"
	namePlain     = "httputil.ReverseProxy, BufferPool, large idle pool"
	nameDefaults  = "httputil.ReverseProxy, defaults"
	nameThroughUs = "sluice, metering and accounting on"
)

// proxyContender is one way to reach the provider.
type proxyContender struct {
	name string
	open func(ctx context.Context, upstream *url.URL) (handler http.Handler, base string, done func() error, err error)
}

// proxyContenders are the contenders. Sluice adds itself in sluiceproxy.go.
var proxyContenders = []proxyContender{
	{nameDirect, nil},
	{nameDefaults, func(_ context.Context, up *url.URL) (http.Handler, string, func() error, error) {
		return httputil.NewSingleHostReverseProxy(up), "", nothingFails, nil
	}},
	{namePlain, func(_ context.Context, up *url.URL) (http.Handler, string, func() error, error) {
		p := httputil.NewSingleHostReverseProxy(up)
		t := http.DefaultTransport.(*http.Transport).Clone()
		t.MaxIdleConns, t.MaxIdleConnsPerHost, t.DisableCompression = 4096, 1024, true
		p.Transport, p.BufferPool = t, &copyBuffers{}
		return p, "", func() error { t.CloseIdleConnections(); return nil }, nil
	}},
}

func nothingFails() error { return nil }

type copyBuffers struct{ pool sync.Pool }

func (b *copyBuffers) Get() []byte {
	if p, ok := b.pool.Get().(*[]byte); ok {
		return *p
	}
	return make([]byte, 32<<10)
}
func (b *copyBuffers) Put(p []byte) { b.pool.Put(&p) }

// The requests and the response: a small chat call, and its answer with usage.
var (
	proxyCall   = []byte(`{"model":"claude-haiku-4-5","max_tokens":100,"messages":[{"role":"user","content":"How many roads must a man walk down?"}]}`)
	proxyStream = []byte(`{"model":"claude-haiku-4-5","max_tokens":100,"stream":true,"messages":[{"role":"user","content":"How many roads must a man walk down?"}]}`)
	proxyAnswer = []byte(`{"id":"msg_1","type":"message","role":"assistant","model":"claude-haiku-4-5","content":[{"type":"text","text":"The answer is blowing in the wind."}],"stop_reason":"end_turn","stop_sequence":null,"usage":{"input_tokens":17,"cache_creation_input_tokens":0,"cache_read_input_tokens":0,"output_tokens":9}}`)
)

// proxyProvider answers like Anthropic.
func proxyProvider(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	h := w.Header()
	h.Set("Anthropic-Ratelimit-Requests-Limit", "1000000")
	h.Set("Anthropic-Ratelimit-Requests-Remaining", "999999")
	h.Set("Anthropic-Ratelimit-Requests-Reset", time.Now().Add(time.Minute).UTC().Format(time.RFC3339))
	if !bytes.Contains(body, []byte(`"stream":true`)) {
		h.Set("Content-Type", "application/json")
		_, _ = w.Write(proxyAnswer)
		return
	}
	h.Set("Content-Type", "text/event-stream")
	fmt.Fprint(w, "event: message_start\ndata: {\"type\":\"message_start\",\"message\":{\"id\":\"m\",\"type\":\"message\",\"role\":\"assistant\",\"model\":\"claude-haiku-4-5\",\"content\":[],\"usage\":{\"input_tokens\":17,\"output_tokens\":1}}}\n\n")
	w.(http.Flusher).Flush()
	fmt.Fprint(w, "event: message_delta\ndata: {\"type\":\"message_delta\",\"delta\":{\"stop_reason\":\"end_turn\"},\"usage\":{\"output_tokens\":9}}\n\nevent: message_stop\ndata: {\"type\":\"message_stop\"}\n\n")
}

// proxyWay is an opened contender.
type proxyWay struct {
	name   string
	url    string
	client *http.Client
	close  []func() error
	seen   map[int][]proxySeen // by connections
}

type proxySeen struct{ rate, p50, p99, first, cpu float64 }

func measureProxy(ctx context.Context, opts Options, progress io.Writer) (rows []ProxyRow, err error) {
	upstream, up, err := listenHTTP(http.HandlerFunc(proxyProvider))
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, upstream()) }()
	var ways []*proxyWay
	for _, c := range proxyContenders {
		w, failed := openWay(ctx, c, up)
		if failed != nil {
			return nil, failed
		}
		defer func() {
			for _, f := range slices.Backward(w.close) {
				err = errors.Join(err, f())
			}
		}()
		ways = append(ways, w)
	}
	for round := range opts.Rounds {
		fmt.Fprintf(progress, "measuring: through a proxy, round %d of %d\n", round+1, opts.Rounds)
		for _, connections := range proxyConnections {
			for i := range ways {
				w := ways[(i+round)%len(ways)]
				s, err := w.measure(ctx, connections, opts.Proxy)
				if err != nil {
					return nil, fmt.Errorf("%s: %w", w.name, err)
				}
				w.seen[connections] = append(w.seen[connections], s)
			}
		}
	}
	return proxyRows(ways), nil
}

var proxyConnections = []int{1, 64}

func openWay(ctx context.Context, c proxyContender, up *url.URL) (*proxyWay, error) {
	w := &proxyWay{name: c.name, url: up.String() + "/v1/messages", seen: map[int][]proxySeen{}}
	t := &http.Transport{MaxIdleConns: 4096, MaxIdleConnsPerHost: 1024, DisableCompression: true}
	w.client = &http.Client{Transport: t}
	if c.open != nil {
		handler, base, done, err := c.open(ctx, up)
		if err != nil {
			return nil, err
		}
		stop, at, err := listenHTTP(handler)
		if err != nil {
			return nil, errors.Join(err, done())
		}
		w.close = append(w.close, done, stop)
		w.url = at.String() + base + "/v1/messages"
	}
	w.close = append(w.close, func() error { t.CloseIdleConnections(); return nil })
	return w, nil
}

// listenHTTP serves on a free port.
func listenHTTP(h http.Handler) (stop func() error, at *url.URL, err error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, nil, err
	}
	s := &http.Server{Handler: h, ReadHeaderTimeout: time.Minute}
	served := make(chan struct{})
	go func() {
		_ = s.Serve(l) // until stop closes the server
		close(served)
	}()
	return func() error { err := s.Close(); <-served; return err }, &url.URL{Scheme: "http", Host: l.Addr().String()}, nil
}

// measure sends small calls for a while, then a few streams one after the other.
func (w *proxyWay) measure(ctx context.Context, connections int, length time.Duration) (s proxySeen, err error) {
	if _, _, err := w.run(ctx, connections, length/5); err != nil {
		return s, err
	}
	before := cpuTime()
	took, elapsed, err := w.run(ctx, connections, length)
	if err != nil {
		return s, err
	}
	s.cpu = micros(cpuTime()-before) / float64(len(took))
	slices.Sort(took)
	s.rate = float64(len(took)) / elapsed.Seconds()
	s.p50, s.p99 = micros(took[len(took)/2]), micros(took[len(took)*99/100])
	var firsts []time.Duration
	for range 50 {
		d, err := w.once(ctx, proxyStream, make([]byte, 1))
		if err != nil {
			return s, err
		}
		firsts = append(firsts, d)
	}
	slices.Sort(firsts)
	s.first = micros(firsts[len(firsts)/2])
	return s, nil
}

func (w *proxyWay) run(ctx context.Context, connections int, length time.Duration) (took []time.Duration, elapsed time.Duration, err error) {
	all := make([][]time.Duration, connections)
	errs := make([]error, connections)
	began := time.Now()
	var wg sync.WaitGroup
	for i := range connections {
		wg.Go(func() {
			for time.Since(began) < length && ctx.Err() == nil {
				d, err := w.once(ctx, proxyCall, nil)
				if err != nil {
					errs[i] = err
					return
				}
				all[i] = append(all[i], d)
			}
		})
	}
	wg.Wait()
	elapsed = time.Since(began)
	took = slices.Concat(all...)
	if err := errors.Join(errs...); err != nil || len(took) == 0 {
		return nil, 0, errors.Join(err, ctx.Err())
	}
	return took, elapsed, nil
}

// once sends one call and returns how long it took: until the first byte if first is not nil, else until the end.
func (w *proxyWay) once(ctx context.Context, body, first []byte) (time.Duration, error) {
	began := time.Now()
	q, err := http.NewRequestWithContext(ctx, http.MethodPost, w.url, bytes.NewReader(body))
	if err != nil {
		return 0, err
	}
	q.Header.Set("Content-Type", "application/json")
	q.Header.Set("X-Api-Key", "key")
	resp, err := w.client.Do(q)
	if err != nil {
		return 0, err
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		text, _ := io.ReadAll(io.LimitReader(resp.Body, 500))
		return 0, fmt.Errorf("status %d: %s", resp.StatusCode, text)
	}
	var d time.Duration
	if first != nil {
		if _, err := io.ReadFull(resp.Body, first); err != nil {
			return 0, err
		}
		d = time.Since(began)
	}
	if _, err := io.Copy(io.Discard, resp.Body); err != nil {
		return 0, err
	}
	if first == nil {
		d = time.Since(began)
	}
	return d, nil
}

func proxyRows(ways []*proxyWay) (rows []ProxyRow) {
	for _, connections := range proxyConnections {
		from := len(rows)
		plain := 0.0
		for _, w := range ways {
			row := ProxyRow{Name: w.name, Connections: connections}
			of := func(f func(proxySeen) float64) float64 { return medianOf(w.seen[connections], f) }
			row.Rate, row.P50 = of(func(s proxySeen) float64 { return s.rate }), of(func(s proxySeen) float64 { return s.p50 })
			row.P99, row.First = of(func(s proxySeen) float64 { return s.p99 }), of(func(s proxySeen) float64 { return s.first })
			row.CPU = of(func(s proxySeen) float64 { return s.cpu })
			for _, s := range w.seen[connections] {
				row.Best = max(row.Best, s.rate)
			}
			if w.name == namePlain {
				plain = row.Rate
			}
			rows = append(rows, row)
		}
		for i := from; i < len(rows); i++ {
			rows[i].Ratio = rows[i].Rate / plain
		}
	}
	return rows
}

func (r Report) printProxy(out io.Writer) {
	connections := 0
	for _, row := range r.Proxy {
		if row.Connections != connections {
			connections = row.Connections
			fmt.Fprintf(out, "\nthrough a proxy, %d connections\trequests/s\tbest\tx plain proxy\tp50 us\tp99 us\tfirst byte us\tCPU us\n", connections)
		}
		fmt.Fprintf(out, "  %s\t%.0f\t%.0f\t%.2f\t%.0f\t%.0f\t%.0f\t%.0f\n", row.Name, row.Rate, row.Best, row.Ratio, row.P50, row.P99, row.First, row.CPU)
	}
}

func proxyBars(rows []ProxyRow) []Bar {
	find := func(name string, connections int) ProxyRow {
		i := slices.IndexFunc(rows, func(r ProxyRow) bool { return r.Name == name && r.Connections == connections })
		if i < 0 {
			return ProxyRow{}
		}
		return rows[i]
	}
	us, plain := find(nameThroughUs, 64), find(namePlain, 64)
	if us.Rate == 0 {
		return nil
	}
	one, plainOne := find(nameThroughUs, 1), find(namePlain, 1)
	return []Bar{
		atLeast("proxy, 64 connections: times as many as httputil.ReverseProxy", us.Rate/plain.Rate, 1.15),
		atLeast("proxy, one connection: times as many as httputil.ReverseProxy", one.Rate/plainOne.Rate, 0.9),
		bar("proxy, 64 connections: p50, times httputil.ReverseProxy", us.P50/plain.P50, 0, 1.15),
		bar("proxy: first byte of a stream later than through httputil.ReverseProxy, ms", max(one.First-plainOne.First, 0)/1000, 0, 1),
	}
}
