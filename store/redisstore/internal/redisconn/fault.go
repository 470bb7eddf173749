package redisconn

import (
	"context"
	"crypto/tls"
	"errors"
	"io"
	"net"
	"os"
	"strings"
	"syscall"

	"github.com/redis/rueidis"
)

// Errors for use with errors.Is. An error of a [Link] matches at most one of them.
var (
	ErrUnreachable = errors.New("cannot reach Redis, or it cannot serve now")
	ErrUnfit       = errors.New("this Redis cannot be used")
	ErrClosed      = errors.New("the connection to Redis is closed")
)

// Fault says what an error means for the caller.
type Fault uint8

// The faults.
const (
	FaultNone        Fault = iota
	FaultUnreachable       // no connection or no reply: the script may have run
	FaultNotRun            // refused for now: nothing was changed, retry in a moment
	FaultUnfit             // refused for good: a retry is useless
	FaultScript            // the script itself failed; its writes before that remain
	FaultClosed            // [Link.Close] was called: the script may have run
)

func (f Fault) String() string {
	names := [...]string{"none", "unreachable", "not run", "unfit", "script", "closed"}
	if int(f) >= len(names) {
		return "invalid"
	}
	return names[f]
}

// Error is the error of a [Link]: what failed, at which address, and what to do about it.
type Error struct {
	Fault Fault
	at    string
	what  string
	hint  string
	cause error // nil if its text held a password
}

func (e *Error) Error() string { return e.at + ": " + e.what }

// Hint says what to do, or is "".
func (e *Error) Hint() string { return e.hint }

// Unwrap returns the error above that the fault stands for, and the cause.
func (e *Error) Unwrap() []error {
	var all []error
	switch e.Fault {
	case FaultUnreachable, FaultNotRun:
		all = append(all, ErrUnreachable)
	case FaultUnfit:
		all = append(all, ErrUnfit)
	case FaultClosed:
		all = append(all, ErrClosed)
	}
	if e.cause != nil {
		all = append(all, e.cause)
	}
	return all
}

// Classify returns the fault of an error of a [Link] or of rueidis. The error of a context is FaultUnreachable, because no
// reply was seen.
func Classify(err error) Fault {
	if err == nil {
		return FaultNone
	}
	if e, ok := errors.AsType[*Error](err); ok {
		return e.Fault
	}
	return judge(err).fault
}

// Why describes err and what to do about it in one sentence.
func Why(err error) string {
	if err == nil {
		return ""
	}
	e, ok := errors.AsType[*Error](err)
	if !ok {
		v := judge(err)
		e = &Error{what: v.text(), hint: v.hint}
	}
	if e.hint == "" {
		return e.what
	}
	return e.what + "; " + e.hint
}

// diagnosis is a classified error: what it means, what to do, and the server's own words.
type diagnosis struct {
	fault  Fault
	what   string
	hint   string
	detail string
}

func (v diagnosis) text() string {
	if v.detail == "" {
		return v.what
	}
	return v.what + ": " + short(v.detail)
}

func judge(err error) diagnosis {
	if errors.Is(err, ErrClosed) {
		return diagnosis{fault: FaultClosed, what: ErrClosed.Error()}
	}
	if answer, ok := errors.AsType[*rueidis.RedisError](err); ok {
		if answer.IsNil() {
			return diagnosis{fault: FaultScript, what: "the script returned nothing"}
		}
		return judgeAnswer(answer.Error())
	}
	if rueidis.IsParseErr(err) {
		return diagnosis{fault: FaultScript, what: "the script returned something else than a string"}
	}
	if v, ok := judgeTLS(err); ok {
		return v
	}
	return judgeConnection(err)
}

// judgeConnection classifies errors that Redis did not send.
func judgeConnection(err error) diagnosis {
	v := diagnosis{fault: FaultUnreachable, what: "Redis cannot be reached"}
	name, noName := errors.AsType[*net.DNSError](err)
	switch {
	case errors.Is(err, context.DeadlineExceeded), errors.Is(err, os.ErrDeadlineExceeded):
		v.what, v.hint = "Redis did not answer in time", slowHint
	case errors.Is(err, context.Canceled):
		v.what = "the caller left before Redis answered"
	case strings.HasPrefix(err.Error(), "received unknown message type"):
		v.what, v.hint = "the server there does not speak the Redis protocol", "check the port; the store of a daemon is http://HOST:PORT"
	case errors.Is(err, rueidis.ErrNoSlot), strings.Contains(err.Error(), "the redis role is not master"):
		v = diagnosis{fault: FaultNotRun, what: "no master is in charge of the key at this moment", hint: failoverHint}
	case errors.Is(err, rueidis.ErrClosing):
		v.what, v.hint = "the connection was replaced before Redis answered", failoverHint
	case noName:
		v.what, v.detail, v.hint = "the host cannot be found", name.Error(), "is its name right?"
	case errors.Is(err, syscall.ECONNREFUSED), errors.Is(err, syscall.ENOENT):
		v.detail, v.hint = err.Error(), "is it running there? Start it, or correct the address"
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF), errors.Is(err, syscall.ECONNRESET), errors.Is(err, syscall.EPIPE):
		v.what, v.hint = "the connection was closed before Redis answered", goneHint
	default:
		v.detail = err.Error()
	}
	return v
}

// Hints depend on TLS: a server that wants a client certificate may close the connection before it says so, and a server
// that does not speak TLS waits for more bytes.
const (
	slowHint    = "is it overloaded or stopped, or the network cut?"
	slowHintTLS = slowHint + " If it never answers, does it speak TLS on that port? Otherwise use redis://"
	goneHint    = "was it restarted? If it never answers, does it speak TLS on that port? Then use rediss://"
	goneHintTLS = "was it restarted? If it never answers, does it want a client certificate? Name its files as cert= and key="
)

const failoverHint = "a failover takes some seconds; if it lasts, look at the cluster or the sentinels"

// judgeTLS classifies failed TLS handshakes.
func judgeTLS(err error) (diagnosis, bool) {
	unfit := func(what, detail, hint string) (diagnosis, bool) {
		return diagnosis{fault: FaultUnfit, what: what, detail: detail, hint: hint}, true
	}
	if _, ok := errors.AsType[tls.RecordHeaderError](err); ok {
		return unfit("the server does not speak TLS on this port", "", "use redis:// instead of rediss://, or the server's TLS port")
	}
	if e, ok := errors.AsType[*tls.CertificateVerificationError](err); ok {
		return unfit("the server's certificate is not accepted", e.Err.Error(), "name the file with its authority as ca=, and as servername= the name it is for, if that is not the host's")
	}
	if text := err.Error(); strings.Contains(text, "remote error: tls:") {
		return unfit("the server refused the TLS connection", text, "does it want a client certificate? Name its files as cert= and key=")
	}
	return diagnosis{}, false
}

// short makes an error text fit on one line.
func short(s string) string {
	const most = 300
	if len(s) > most {
		s = strings.ToValidUTF8(s[:most], "") + "..."
	}
	return strings.Join(strings.Fields(s), " ")
}
