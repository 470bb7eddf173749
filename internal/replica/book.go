package replica

// A book gives numbers to what a process has sent once, so that its later entries can refer to it. Both sides keep it: the
// replicas, as a part of their state, and the Writer. Only entries of the process itself change it, so the two agree
// whatever lies between the process's entries in the log.
type book[T any] struct {
	list  []T
	size  int    // bytes
	added uint64 // ever
}

// Bounds of the books of one process. Longer texts and shapes come whole each time. A book that is full begins anew.
const (
	maxNames      = 1024
	maxNameBytes  = 16 << 10
	longestName   = 64
	maxShapes     = 256
	maxShapeBytes = 16 << 10
	longestShape  = 1 << 10
)

// add gives v, of so many bytes, the next number.
func (k *book[T]) add(v T, size, most, mostBytes int) {
	if len(k.list) >= most || k.size+size > mostBytes {
		k.list, k.size = nil, 0 // the old list stays as it is, so that a decoder can go back to it
	}
	k.list = append(k.list, v)
	k.size += size
	k.added++
}

func addName(k *book[string], name string) {
	if len(name) <= longestName {
		k.add(name, len(name), maxNames, maxNameBytes)
	}
}

func addShape[T any](k *book[T], s T, size int) {
	if size <= longestShape {
		k.add(s, size, maxShapes, maxShapeBytes)
	}
}

// index is the Writer's side of a book.
type index struct {
	book    book[string]
	numbers map[string]uint64 // from 0
}

// follow makes the index that of a book with these contents, of which added were ever added.
func (x *index) follow(added uint64, n int, text func(i int) string, add func(string)) {
	if x.book.added == added {
		return
	}
	x.book = book[string]{}
	clear(x.numbers)
	for i := range n {
		add(text(i))
	}
	x.book.added = added
}

// note follows an addition to the book.
func (x *index) note(text string, before uint64) {
	if x.book.added == before {
		return
	}
	if len(x.book.list) == 1 || x.numbers == nil {
		x.numbers = map[string]uint64{}
	}
	x.numbers[text] = uint64(len(x.book.list) - 1)
}

func (x *index) addName(name string) {
	before := x.book.added
	addName(&x.book, name)
	x.note(name, before)
}

func (x *index) addShape(code string) {
	before := x.book.added
	addShape(&x.book, code, len(code))
	x.note(code, before)
}
