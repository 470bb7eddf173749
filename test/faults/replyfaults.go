package main

import "time"

// replyFaults returns the faults of single replies. The command has reached Redis and was executed.
func replyFaults() []*fault {
	return []*fault{
		{name: "reply-swallowed", what: "one reply of about 50 is dropped and its connection closed", via: viaRelay, do: swallow},
		{name: "reply-late", what: "one reply of about 50 comes 1 s later, when the client has given up (timeout=500ms)", via: viaRelay, params: "timeout=500ms", do: late},
	}
}

const repliesFor = 5 * time.Second

// oneIn returns a plan that applies an action to about one reply in n.
func (r *rig) oneIn(n int, a action) func() action {
	left := n
	return func() action {
		if left--; left > 0 {
			return action{}
		}
		left = n/2 + r.rand.IntN(n)
		return a
	}
}

func swallow(r *rig) error {
	defer r.relay.setPlan(nil)
	r.relay.setPlan(r.oneIn(50, action{swallow: true}))
	return r.sleep(repliesFor)
}

func late(r *rig) error {
	defer r.relay.setPlan(nil)
	r.relay.setPlan(r.oneIn(50, action{hold: time.Second}))
	return r.sleep(repliesFor)
}
