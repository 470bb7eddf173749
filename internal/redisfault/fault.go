// Package redisfault says what errors of Redis and of its client mean: whether a call may have been carried out, whether a
// retry can help, and what a person can do.
package redisfault

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

// ErrClosed reports that the client was closed.
var ErrClosed = errors.New("the connection to Redis is closed")

// Fault says what an error means for the caller.
type Fault uint8

// The faults.
const (
	None        Fault = iota
	Unreachable       // no connection or no reply: the script may have run
	NotRun            // refused for now: nothing was changed, retry in a moment
	Unfit             // refused for good: a retry is useless
	Script            // the script itself failed; its writes before that remain
	Closed            // the client was closed: the script may have run
)

func (f Fault) String() string {
	names := [...]string{"none", "unreachable", "not run", "unfit", "script", "closed"}
	if int(f) >= len(names) {
		return "invalid"
	}
	return names[f]
}

// Diagnosis is a classified error: what it means, what to do, and the server's own words. PREFIX in a hint stands for that
// of the caller's keys.
type Diagnosis struct {
	Fault  Fault
	What   string
	Hint   string
	Detail string
	Full   bool // the server has no memory left
}

// Text returns what happened, with the server's own words.
func (v Diagnosis) Text() string {
	if v.Detail == "" {
		return v.What
	}
	return v.What + ": " + short(v.Detail)
}

// Judge classifies an error of rueidis.
func Judge(err error) Diagnosis {
	if errors.Is(err, ErrClosed) {
		return Diagnosis{Fault: Closed, What: ErrClosed.Error()}
	}
	if answer, ok := errors.AsType[*rueidis.RedisError](err); ok {
		if answer.IsNil() {
			return Diagnosis{Fault: Script, What: "the script returned nothing"}
		}
		return judgeAnswer(answer.Error())
	}
	if rueidis.IsParseErr(err) {
		return Diagnosis{Fault: Script, What: "the script returned something else than a string"}
	}
	if v, ok := judgeTLS(err); ok {
		return v
	}
	return judgeConnection(err)
}

// judgeConnection classifies errors that Redis did not send.
func judgeConnection(err error) Diagnosis {
	v := Diagnosis{Fault: Unreachable, What: "Redis cannot be reached"}
	name, noName := errors.AsType[*net.DNSError](err)
	switch {
	case errors.Is(err, context.DeadlineExceeded), errors.Is(err, os.ErrDeadlineExceeded):
		v.What, v.Hint = "Redis did not answer in time", slowHint
	case errors.Is(err, context.Canceled):
		v.What = "the caller left before Redis answered"
	case strings.HasPrefix(err.Error(), "received unknown message type"):
		v.What, v.Hint = "the server there does not speak the Redis protocol", "check the port; the store of a daemon is http://HOST:PORT"
	case errors.Is(err, rueidis.ErrNoSlot), strings.Contains(err.Error(), "the redis role is not master"):
		v = Diagnosis{Fault: NotRun, What: "no master is in charge of the key at this moment", Hint: failoverHint}
	case errors.Is(err, rueidis.ErrClosing):
		v.What, v.Hint = "the connection was replaced before Redis answered", failoverHint
	case noName:
		v.What, v.Detail, v.Hint = "the host cannot be found", name.Error(), "is its name right?"
	case errors.Is(err, syscall.ECONNREFUSED), errors.Is(err, syscall.ENOENT):
		v.Detail, v.Hint = err.Error(), "is it running there? Start it, or correct the address"
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF), errors.Is(err, syscall.ECONNRESET), errors.Is(err, syscall.EPIPE):
		v.What, v.Hint = "the connection was closed before Redis answered", goneHint
	default:
		v.Detail = err.Error()
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

// OverTLS returns v with hints for a connection that uses TLS.
func (v Diagnosis) OverTLS() Diagnosis {
	switch v.Hint {
	case slowHint:
		v.Hint = slowHintTLS
	case goneHint:
		v.Hint = goneHintTLS
	}
	return v
}

// judgeTLS classifies failed TLS handshakes.
func judgeTLS(err error) (Diagnosis, bool) {
	unfit := func(what, detail, hint string) (Diagnosis, bool) {
		return Diagnosis{Fault: Unfit, What: what, Detail: detail, Hint: hint}, true
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
	return Diagnosis{}, false
}

// short makes an error text fit on one line.
func short(s string) string {
	const most = 300
	if len(s) > most {
		s = strings.ToValidUTF8(s[:most], "") + "..."
	}
	return strings.Join(strings.Fields(s), " ")
}

// IsReplica reports whether the server refused a write because it is a replica.
func IsReplica(err error) bool { return Judge(err) == answers["READONLY"] }
