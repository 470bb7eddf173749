package store

// Copied is implemented by pools of which every process keeps a copy, fed by a log that the processes share.
type Copied interface {
	// OnNotice sets the function to call when something went wrong with the log or with this process's copy. It is
	// called without locks held and must not block.
	OnNotice(f func(Notice))
	// Copy describes this process's copy.
	Copy() Copy
}

// Notice says what went wrong with a log or a copy of it. The store has dealt with it already.
type Notice struct {
	Kind    NoticeKind
	At      string // position in the log
	Process uint64 // that wrote the entry, see [Copy]; 0: not known
	Why     string // may be empty
}

// NoticeKind says what a [Notice] is about.
type NoticeKind uint8

// The kinds of notice.
const (
	NoticeDiverged NoticeKind = iota // another process has decided otherwise: this one loaded its copy anew
	NoticePoisoned                   // an entry made the copy fail: all processes pass over it
	NoticeLost                       // the engine lost the log or its end: the processes that knew it write it again
	NoticeBehind                     // the log grows faster than this process can read it: it goes on as in an outage
	NoticeEvicted                    // NoticeLost, because the engine deleted keys to make room, as its configuration allows
)

func (k NoticeKind) String() string {
	return pick(int(k), "diverged", "poisoned", "lost", "behind", "evicted")
}

// Copy describes a process's copy of a pool.
type Copy struct {
	Process   uint64 // names this process in the log: the ids of its sessions begin with it
	Processes int    // that share the pool
	// Rules is the number of the rules by which the pool decides, Known the highest that this process knows. Holding are
	// the processes that know none above Rules, at most [MaxListed].
	Rules, Known int
	Holding      []uint64
	// Counted since this process opened the pool.
	Diverged, Poisoned, Lost, Behind, Snapshots int64
	LogBytes, SnapshotBytes                     int64 // of the log since the latest snapshot, and of that
}
