package mock

import (
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"
)

// fault holds the faults that the X-Mock header of a request asks for.
type fault struct {
	status     int    // status of the response; 0: as usual
	retryAfter string // Retry-After header of that response, verbatim
	garbage    bool
	hang       bool
	closeEarly bool
	errorIn200 bool
	body       int64 // bytes; -1: as usual
	trailers   bool
	gzip       bool
	slow       time.Duration // between pieces; -1: as usual
	noUsage    bool
	cacheRead  int64
	cacheWrite int64
}

// faultHelp lists all faults, for error messages.
const faultHelp = "status=CODE, retry-after=TEXT, garbage-headers, hang, close-early, error-in-200, body=SIZE, trailers, gzip, slow=TIME, no-usage, cache-read=N, cache-write=N"

// maxTokens bounds the token counts that X-Mock can ask for.
const maxTokens = 1_000_000_000

// parseFault parses the values of the X-Mock header.
func parseFault(values []string) (fault, error) {
	f := fault{body: -1, slow: -1}
	for item := range strings.SplitSeq(strings.Join(values, ","), ",") {
		item = strings.TrimSpace(item)
		if item == "" {
			continue
		}
		name, value, given := strings.Cut(item, "=")
		if err := f.set(name, value, given); err != nil {
			return f, fmt.Errorf("X-Mock: %.80q: %w", item, err)
		}
	}
	return f, nil
}

func (f *fault) set(name, value string, given bool) (err error) {
	flags := map[string]*bool{
		"garbage-headers": &f.garbage, "hang": &f.hang, "close-early": &f.closeEarly, "error-in-200": &f.errorIn200,
		"trailers": &f.trailers, "gzip": &f.gzip, "no-usage": &f.noUsage,
	}
	if flag := flags[name]; flag != nil {
		if given {
			return errors.New("it has no value")
		}
		*flag = true
		return nil
	}
	switch name {
	case "status":
		if f.status, err = strconv.Atoi(value); err != nil || f.status < 400 || f.status > 599 {
			return errors.New("it has to be a status from 400 to 599")
		}
	case "retry-after":
		f.retryAfter = value
	case "body":
		f.body, err = parseSize(value)
		return err
	case "slow":
		if f.slow, err = time.ParseDuration(value); err != nil || f.slow < 0 || f.slow > MaxDelay {
			return errors.New("it has to be a time such as 50ms")
		}
	case "cache-read":
		f.cacheRead, err = parseTokens(value)
		return err
	case "cache-write":
		f.cacheWrite, err = parseTokens(value)
		return err
	default:
		return errors.New("known are " + faultHelp)
	}
	return nil
}

func parseTokens(s string) (int64, error) {
	n, err := strconv.ParseInt(s, 10, 64)
	if err != nil || n < 0 || n > maxTokens {
		return 0, fmt.Errorf("it has to be a number from 0 to %d", maxTokens)
	}
	return n, nil
}

// parseSize parses a number of bytes: 4096, 64KB, 10GB, 1GiB.
func parseSize(s string) (int64, error) {
	digits := strings.TrimRight(s, "KMGTiB")
	n, err := strconv.ParseInt(digits, 10, 64)
	scale, known := map[string]int64{
		"": 1, "B": 1, "KB": 1e3, "MB": 1e6, "GB": 1e9, "TB": 1e12, "KiB": 1 << 10, "MiB": 1 << 20, "GiB": 1 << 30, "TiB": 1 << 40,
	}[s[len(digits):]]
	if err != nil || !known || n < 0 || n > math.MaxInt64/scale {
		return 0, errors.New("it has to be a size such as 64KB or 10GB")
	}
	return n * scale, nil
}
