// Command winedll writes bcryptprimitives.dll, which every Go program on Windows loads and Wine before 9 lacks:
//
//	go run ./scripts/winedll bcryptprimitives.dll
//
// The library has no code. Its one function, ProcessPrng, is SystemFunction036 of advapi32.dll: both fill a buffer with random bytes.
package main

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"os"
)

const (
	library  = "bcryptprimitives.dll"
	function = "ProcessPrng"
	forward  = "advapi32.SystemFunction036"
)

// Where things are in the file, and in memory.
const (
	base    = 0x6_8000_0000
	aligned = 0x200  // of sections in the file
	section = 0x1000 // the only one's address; also what sections are aligned to
)

func main() {
	if len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, "error: one file to write is needed\nhint: go run ./scripts/winedll bcryptprimitives.dll")
		os.Exit(2)
	}
	if err := os.WriteFile(os.Args[1], image(), 0o644); err != nil { //nolint:gosec // it is a library, which all may read
		fmt.Fprintln(os.Stderr, "error:", err)
		os.Exit(1)
	}
}

// image is the file: the headers, and one section with the table of exports.
func image() []byte {
	exports := table()
	var b bytes.Buffer
	put := func(values ...any) {
		for _, v := range values {
			_ = binary.Write(&b, binary.LittleEndian, v) // a buffer takes everything
		}
	}
	dos := [64]byte{0: 'M', 1: 'Z', 60: 64} // at 60: where the next header is
	put(dos, [4]byte{'P', 'E'})
	const amd64, sections, optional, dll = 0x8664, 1, 240, 0x2022
	put(uint16(amd64), uint16(sections), uint32(0), uint32(0), uint32(0), uint16(optional), uint16(dll))

	const pe64, version10, gui, relocatable = 0x20b, 10, 2, 0x140
	put(uint16(pe64), uint16(0), uint32(0), uint32(aligned), uint32(0), uint32(0), uint32(section), uint64(base))
	put(uint32(section), uint32(aligned), uint16(version10), uint16(0), uint32(0), uint16(version10), uint16(0), uint32(0))
	put(uint32(2*section), uint32(aligned), uint32(0), uint16(gui), uint16(relocatable))
	put(uint64(1<<20), uint64(1<<12), uint64(1<<20), uint64(1<<12), uint32(0), uint32(16))
	put(uint32(section), uint32(len(exports)), [15]uint64{}) // the exports are the first of 16 directories

	const readOnlyData = 0x40000040
	put([8]byte{'.', 'r', 'd', 'a', 't', 'a'}, uint32(len(exports)), uint32(section), uint32(aligned), uint32(aligned))
	put(uint32(0), uint32(0), uint32(0), uint32(readOnlyData))
	b.Write(make([]byte, aligned-b.Len()))
	b.Write(exports)
	b.Write(make([]byte, 2*aligned-b.Len()))
	return b.Bytes()
}

// table is the directory of exports, which has one entry: a name, and where that leads.
func table() []byte {
	const head = 40
	const addresses, names, ordinals, texts = section + head, section + head + 4, section + head + 8, section + head + 10
	const nameAt, functionAt = texts, texts + len(library) + 1
	const forwardAt = functionAt + len(function) + 1
	var b bytes.Buffer
	for _, v := range []any{
		uint32(0), uint32(0), uint32(0), uint32(nameAt), uint32(1), uint32(1), uint32(1), uint32(addresses), uint32(names), uint32(ordinals),
		uint32(forwardAt), uint32(functionAt), uint16(0),
	} {
		_ = binary.Write(&b, binary.LittleEndian, v)
	}
	for _, text := range []string{library, function, forward} {
		b.WriteString(text + "\x00")
	}
	return b.Bytes()
}
