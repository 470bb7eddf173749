package replay

import (
	"bufio"
	"encoding/csv"
	"encoding/json"
	"errors"
	"io"
	"slices"
	"strings"

	"github.com/sluicehq/sluice/internal/keylabel"
)

// spend reads a row of LiteLLM's spend log.
func (r *reader) spend(o object) error {
	start, err := r.start(o, "startTime")
	if err != nil {
		return err
	}
	if o.yes("cache_hit") {
		r.log.Cached++
		return nil
	}
	s := Send{Start: start, End: start, Model: o.text("model", "model_group")}
	if end, ok := r.after(o, start, "endTime"); ok {
		s.End = end
	}
	if first, ok := r.after(o, start, "completionStartTime"); ok {
		s.First = first
	}
	meta := o.inner("metadata")
	s.Caller = caller(o, meta)
	s.User = o.text("end_user", "team_id")
	status := o.text("status")
	if status == "" {
		status = meta.text("status")
	}
	if strings.EqualFold(status, "failure") {
		s.Failed = true
		if told := meta.inner("error_information"); told.text("error_code") == "429" || strings.Contains(told.text("error_class"), "RateLimit") {
			s.Refused, s.Failed = true, false
		}
	} else if status != "" {
		var ok bool
		if s.Refused, s.Failed, ok = outcome(status); !ok {
			return r.fail("its status is neither success nor failure")
		}
	}
	r.sizes(&s, o)
	r.add(s)
	return nil
}

// caller names the sender of a row: the key's alias, the user, or a label of the key. It never returns the key itself.
func caller(o, meta object) string {
	if name := meta.text("user_api_key_alias"); name != "" {
		return name
	}
	if name := o.text("agent_id", "user", "end_user"); name != "" {
		return name
	}
	if key := o.text("api_key"); key != "" {
		return "key-" + keylabel.Of(nil, key)
	}
	return ""
}

// array reads rows from one JSON array.
func (r *reader) array(b *bufio.Reader) error {
	if r.log.Format != "" && r.log.Format != LiteLLM {
		return &Error{File: r.log.File, Message: "it is a JSON array, which only the format litellm has"}
	}
	r.log.Format, r.entries = LiteLLM, true
	in := &io.LimitedReader{R: b, N: maxArray}
	d := json.NewDecoder(in)
	d.UseNumber()
	if _, err := d.Token(); err != nil {
		return r.fail("the JSON is broken")
	}
	for d.More() {
		r.log.Lines++
		var o object
		if err := d.Decode(&o); err != nil {
			if in.N <= 0 {
				return &Error{File: r.log.File, Message: "the array has more than 256 MB: export it as JSON lines"}
			}
			return r.fail("it is not a JSON object")
		}
		if err := r.spend(o); err != nil {
			return err
		}
		if err := r.full(); err != nil {
			return err
		}
	}
	if _, err := d.Token(); err != nil {
		return r.fail("the array does not end after it")
	}
	return nil
}

const maxArray = 256 << 20

// csv reads rows below a line with the names of columns.
func (r *reader) csv(b *bufio.Reader) error {
	in := csv.NewReader(&lineBound{in: b})
	in.FieldsPerRecord = -1
	in.LazyQuotes = true
	in.ReuseRecord = true
	heads, err := in.Read()
	r.log.Lines = 1
	if errors.Is(err, errLong) {
		return r.fail("the line has more than %d MB", MaxLine>>20)
	}
	if err != nil {
		return r.fail("it is neither JSON nor CSV")
	}
	heads = slices.Clone(heads)
	for i := range heads {
		heads[i] = strings.Trim(strings.TrimSpace(heads[i]), "\ufeff\"")
	}
	if r.log.Format == "" {
		switch {
		case slices.Contains(heads, "startTime"):
			r.log.Format = LiteLLM
		case slices.ContainsFunc(startFields, func(s string) bool { return slices.Contains(heads, s) }) &&
			slices.ContainsFunc(statusFields, func(s string) bool { return slices.Contains(heads, s) }):
			r.log.Format = Access
		default:
			return r.fail("its format is not known: it is neither JSON nor CSV with a column startTime, or time and status")
		}
	}
	if r.log.Format == Events {
		return r.fail("an event log has lines of JSON")
	}
	for {
		row, err := in.Read()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if errors.Is(err, errLong) {
			return r.fail("the next line has more than %d MB", MaxLine>>20)
		}
		r.log.Lines++
		if len(row) > 0 {
			r.log.Lines, _ = in.FieldPos(0)
		}
		if err != nil {
			return r.fail("it is not a row of CSV")
		}
		o := object{}
		for i, value := range row[:min(len(row), len(heads))] {
			if len(value) > MaxLine {
				return r.fail("column %q has more than %d MB", cut(heads[i]), MaxLine>>20)
			}
			o[heads[i]] = value
		}
		if err := r.object(o); err != nil {
			return err
		}
		if err := r.full(); err != nil {
			return err
		}
	}
}

// lineBound fails if a line is too long, because a CSV reader would read all of it into memory.
type lineBound struct {
	in io.Reader
	n  int // bytes since the last line break
}

func (l *lineBound) Read(p []byte) (int, error) {
	n, err := l.in.Read(p)
	for _, c := range p[:n] {
		if l.n++; c == '\n' {
			l.n = 0
		}
		if l.n > MaxLine {
			return 0, errLong
		}
	}
	return n, err
}
