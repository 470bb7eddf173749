// Package outage lets a process go on while the store of a pool cannot be reached, and brings the store
// up to date afterwards.
//
// A [Process] is what one process knows of one pool. It does no I/O, reads no clock and has no lock: the
// store tells it what happened and at what time, sends the operations that it returns, and guards it
// with the store's own lock. Times are the earliest that the server's clock can show.
//
// The steps of an outage, in order:
//
//  1. While the store answers, [Process.Note] records the tickets of this process: open ones, waiting
//     ones, and what closed ones have charged. [Process.Touch] and [Process.Touched] keep the process a
//     member and learn its share.
//  2. The store does not answer: [Process.Begin]. From then on [Process.Decide] answers callers by the
//     [store.OnFailure] of their session. FailClosed refuses. FailOpen grants everything. FailShare grants
//     within the share of this process, which the other members leave alone; [policy.Island] counts it.
//     A process that was never told its share refuses.
//  3. Requests without room wait in a queue of this process, and so do those that wait in the store (stored.go).
//     [Process.Serve] grants them in order, and says when to call it again. Answers, closes and cancels of the
//     store's tickets are kept for later. A 429 from the provider pauses every caller of the process.
//  4. The store answers again. [Process.Return] lists what to tell it, in this order: grants that still
//     count, by force; answers, closes and cancels; that the process is a member; and requests that still wait.
//     [Process.End] ends the outage once all of that has arrived. [Process.Stay] continues the outage if it has not:
//     the store may have heard some of it and may count on the member, so the share begins anew.
//  5. The store answers but has lost data, by a restart or a failover. [Process.Restate] lists what this
//     process holds and which requests wait, for the new epoch, and [Process.Restated] records the results.
//
// Grants made without the store need ticket numbers that the store never gives out. They come from spans
// far above the highest number seen, and on return every session is moved past them (numbers.go).
package outage
