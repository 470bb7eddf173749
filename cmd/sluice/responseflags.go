package main

import (
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/provider"
	"github.com/sluicehq/sluice/retry"
)

// response holds the flags that describe a provider's response, shared by release and observe.
type response struct {
	cmd        *cobra.Command
	status     int
	headers    []string
	retryAfter timeFlag
	body       string
}

func addResponse(cmd *cobra.Command) *response {
	r := &response{cmd: cmd}
	cmd.Flags().IntVar(&r.status, "status", 0, "response status `CODE`, such as 200 or 429")
	cmd.Flags().StringArrayVar(&r.headers, "header", nil, "response header `'NAME: VALUE'`; may be repeated")
	cmd.Flags().Var(&r.retryAfter, "retry-after", "how long the provider asks to wait; without --status this is a 429")
	cmd.Flags().StringVar(&r.body, "body", "", "the answer's body, decompressed: `TEXT`, @FILE, or @- for standard input; the first 64 KiB count")
	return r
}

// given reports whether any of the flags is set.
func (r *response) given() bool {
	return r.cmd.Flags().Changed("status") || len(r.headers) > 0 || r.cmd.Flags().Changed("retry-after") || r.cmd.Flags().Changed("body")
}

// read turns the flags into a response.
func (r *response) read() (*provider.Response, error) {
	bad := func(hint, format string, args ...any) (*provider.Response, error) {
		return nil, &failure{code: exitUsage, message: fmt.Sprintf(format, args...), hint: hint}
	}
	res := &provider.Response{Status: r.status, Header: map[string][]string{}}
	if r.cmd.Flags().Changed("status") && (r.status < 100 || r.status > 599) {
		return bad("a status is a number from 100 to 599", "--status: %d is not a status of HTTP", r.status)
	}
	for _, h := range r.headers {
		name, value, ok := strings.Cut(h, ":")
		if name = strings.TrimSpace(name); !ok || name == "" || strings.ContainsAny(name, " \t\r\n") {
			// The text is not shown, because it may be a key.
			return bad("it is 'NAME: VALUE', as in 'X-RateLimit-Remaining: 0'", "--header: this is not a header")
		}
		name = strings.ToLower(name)
		res.Header[name] = append(res.Header[name], strings.TrimSpace(value))
	}
	var err error
	if res.Body, err = r.readBody(); err != nil {
		return nil, err
	}
	if !r.cmd.Flags().Changed("retry-after") {
		return res, nil
	}
	if time.Duration(r.retryAfter) > retry.Implausible {
		return bad("give a time of at most 31 days, such as 30s or 6h", "--retry-after: %v is too long", time.Duration(r.retryAfter))
	}
	if r.cmd.Flags().Changed("status") && r.status < 400 {
		return res, nil // a response that is no refusal asks for no wait
	}
	if res.Status == 0 {
		res.Status = 429
	}
	seconds := time.Duration(r.retryAfter).Seconds()
	res.Header["retry-after"] = []string{strconv.FormatFloat(seconds, 'f', -1, 64)}
	return res, nil
}

// readBody returns the body from --body, as much of it as dialects read. Errors never quote it, because it is private.
func (r *response) readBody() ([]byte, error) {
	if r.cmd.Flags().Changed("body") && !r.cmd.Flags().Changed("status") && !r.cmd.Flags().Changed("retry-after") {
		return nil, &failure{code: exitUsage, message: "--body: a body says nothing without its status", hint: "give --status, such as --status 403"}
	}
	name, isFile := strings.CutPrefix(r.body, "@")
	if !isFile {
		return []byte(r.body[:min(len(r.body), provider.MaxBody)]), nil
	}
	src := r.cmd.InOrStdin()
	if name != "-" {
		f, err := os.Open(name)
		if err != nil {
			return nil, &failure{code: exitUsage, message: "--body: " + err.Error(), hint: "give the text itself, @FILE, or @- for standard input"}
		}
		defer func() { _ = f.Close() }()
		src = f
	}
	body, err := io.ReadAll(io.LimitReader(src, provider.MaxBody))
	if err != nil {
		return nil, &failure{code: exitUsage, message: "--body: " + err.Error(), hint: "give the text itself, @FILE, or @- for standard input"}
	}
	return body, nil
}

// answer reads the response of the flags in the dialect of a resource.
func (r *response) answer(s *session, resource string) (sluice.Answer, provider.Observation, error) {
	res, err := r.read()
	if err != nil {
		return sluice.Answer{}, provider.Observation{}, err
	}
	a, o := s.answer(resource, res)
	return a, o, nil
}

// pausedUntil returns until when a resource, or the longest paused part of it, is held; nil if it is not.
func (s *session) pausedUntil(cmd *cobra.Command, resource string) *time.Time {
	status, err := s.gate.Resource(cmd.Context(), resource)
	if err != nil {
		return nil // the command has succeeded; this is only shown
	}
	var until *time.Time
	for _, g := range status.Gates {
		if g.Phase == "paused" && g.Until != nil && (until == nil || g.Until.After(*until)) {
			until = g.Until
		}
	}
	return until
}

// untilText describes a pause in words; empty if there is none.
func untilText(until *time.Time) string {
	if until == nil {
		return ""
	}
	return "; paused until " + until.UTC().Format(time.RFC3339)
}
