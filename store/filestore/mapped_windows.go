package filestore

import (
	"os"
	"sync"
	"unsafe"

	"golang.org/x/sys/windows"
)

// remaps is true: Windows maps a file only up to its end. So each file reserves a range of addresses and maps its
// memory into it piece by piece as the file grows. Mapped memory never moves.
const remaps = true

// grain is the granularity of mapped pieces, in the file and in memory.
const grain = 64 << 10

// granular returns the file size to allocate for size bytes.
func granular(size int64) int64 { return (size + grain - 1) / grain * grain }

// mapped is a memory-mapped file.
type mapped struct {
	file  *os.File
	mem   []byte
	size  int64 // bytes allocated on disk, as far as this process knows
	views views
}

// views are the mapped pieces of a file.
type views struct {
	from []int64 // offset of each piece
	end  int64   // end of the last piece
	rest bool    // the addresses behind it are reserved
}

var (
	kernel32      = windows.NewLazySystemDLL("kernel32.dll")
	mapViewOfFile = kernel32.NewProc("MapViewOfFileEx")
)

// addresses is held while addresses that a file needs next are free, so that no other file of this process takes
// them. A thread of the system still can, so mapFile tries again elsewhere.
var addresses sync.Mutex

func mapFile(f *os.File, length int64) (*mapped, error) {
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	for range 10 {
		var base uintptr
		base, err = reserve(0, granular(length))
		if err != nil {
			return nil, os.NewSyscallError("VirtualAlloc", err)
		}
		m := &mapped{file: f, mem: memoryAt(base, length), views: views{rest: true}}
		if err = m.cover(info.Size()); err == nil {
			return m, nil
		}
		_ = m.unmap()
	}
	return nil, err
}

// reserve reserves a range of addresses, at at or anywhere if at is 0.
func reserve(at uintptr, size int64) (uintptr, error) {
	if at == 0 {
		addresses.Lock()
		defer addresses.Unlock()
	}
	return windows.VirtualAlloc(at, uintptr(size), windows.MEM_RESERVE, windows.PAGE_NOACCESS)
}

// memoryAt returns memory that Go's runtime does not manage.
func memoryAt(base uintptr, size int64) []byte {
	return unsafe.Slice(*(**byte)(unsafe.Pointer(&base)), size)
}

func (m *mapped) base() uintptr { return uintptr(unsafe.Pointer(unsafe.SliceData(m.mem))) }

// cover maps the part by which the file has grown.
func (m *mapped) cover(size int64) error {
	end := min(size, int64(len(m.mem)))
	if end <= m.views.end {
		m.size = size
		return nil
	}
	addresses.Lock()
	defer addresses.Unlock()
	from := m.views.end
	if n := len(m.views.from); from%grain != 0 { // another program created the file
		from = m.views.from[n-1]
		_ = windows.UnmapViewOfFile(m.base() + uintptr(from))
		m.views.from, m.views.end = m.views.from[:n-1], from
	}
	if m.views.rest {
		_ = windows.VirtualFree(m.base()+uintptr(granular(m.views.end)), 0, windows.MEM_RELEASE)
	}
	err := mapView(m.file, m.base(), from, end)
	if err == nil {
		m.views.from, m.views.end, m.size = append(m.views.from, from), end, size
	}
	at, last := granular(m.views.end), granular(int64(len(m.mem)))
	m.views.rest = false
	if at < last { // without it the next piece may find its addresses taken, and fail
		got, rest := reserve(m.base()+uintptr(at), last-at)
		m.views.rest = rest == nil && got != 0
	}
	return err
}

// mapView maps a part of a file to its address behind base.
func mapView(f *os.File, base uintptr, from, end int64) error {
	h, err := windows.CreateFileMapping(windows.Handle(f.Fd()), nil, windows.PAGE_READWRITE, uint32(end>>32), uint32(end), nil)
	if err != nil {
		return os.NewSyscallError("CreateFileMapping", err)
	}
	defer windows.CloseHandle(h) //nolint:errcheck // the view keeps it
	at, _, err := mapViewOfFile.Call(uintptr(h), windows.FILE_MAP_READ|windows.FILE_MAP_WRITE,
		uintptr(uint32(from>>32)), uintptr(uint32(from)), uintptr(end-from), base+uintptr(from))
	if at == 0 {
		return os.NewSyscallError("MapViewOfFileEx", err)
	}
	return nil
}

func (m *mapped) unmap() (err error) {
	for _, from := range m.views.from {
		if e := windows.UnmapViewOfFile(m.base() + uintptr(from)); e != nil {
			err = os.NewSyscallError("UnmapViewOfFile", e)
		}
	}
	if m.views.rest {
		_ = windows.VirtualFree(m.base()+uintptr(granular(m.views.end)), 0, windows.MEM_RELEASE)
	}
	m.views = views{}
	return err
}

// allocate makes a file size bytes long and allocates its disk space.
func allocate(f *os.File, _, size int64) error { return f.Truncate(size) }

// shorten always fails: Windows does not shorten a mapped file.
func shorten(*os.File, int64) error { return windows.ERROR_USER_MAPPED_FILE }

// anonymous returns memory outside the heap.
func anonymous(size int64) ([]byte, error) {
	addresses.Lock()
	defer addresses.Unlock()
	base, err := windows.VirtualAlloc(0, uintptr(size), windows.MEM_RESERVE|windows.MEM_COMMIT, windows.PAGE_READWRITE)
	if err != nil {
		return nil, os.NewSyscallError("VirtualAlloc", err)
	}
	return memoryAt(base, size), nil
}

func forget(mem []byte) {
	_ = windows.VirtualFree(uintptr(unsafe.Pointer(unsafe.SliceData(mem))), 0, windows.MEM_RELEASE)
}
