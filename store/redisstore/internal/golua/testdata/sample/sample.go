// Package sample has a small function for each construct that Go and Lua treat differently. Tests translate the functions
// and compare the results of both languages.
package sample

// Funcs are the functions by their names.
var Funcs = map[string]func(a, b int64) int64{
	"Rem": Rem, "Quo": Quo, "RemInt32": RemInt32, "Shift": Shift, "ShiftLeft": ShiftLeft, "ShiftUp": ShiftUp, "Int8": Int8, "Int16": Int16, "Int32": Int32, "Uint8": Uint8,
	"Uint16": Uint16, "Uint32": Uint32, "FromUnsigned": FromUnsigned, "Sets": Sets, "Signed": Signed, "Low": Low, "Product": Product, "Smaller": Smaller,
	"Loop": Loop, "Hide": Hide, "Leave": Leave, "Choose": Choose, "Swap": Swap, "Pairs": Pairs, "Inner": Inner, "List": List, "Named": Named,
}

// Rem has the sign of a.
func Rem(a, b int64) int64 { return a % b }

// Quo rounds towards zero.
func Quo(a, b int64) int64 { return a / b }

// RemInt32 is Rem for a smaller type.
func RemInt32(a, b int64) int64 { return int64(int32(a) % (int32(b)>>1 | 1)) }

// Shift rounds down.
func Shift(a, b int64) int64 { return a >> uint(b&7) }

// ShiftLeft loses the bits that do not fit.
func ShiftLeft(a, b int64) int64 { return int64(uint16(a) << uint(b&7)) }

// ShiftUp is exact in 64 bits.
func ShiftUp(a, b int64) int64 { return a << uint(b&7) }

// Int8 to Uint32 keep the lowest bits.
func Int8(a, _ int64) int64   { return int64(int8(a)) }
func Int16(a, _ int64) int64  { return int64(int16(a)) }
func Int32(a, b int64) int64  { return int64(int32(a + b)) }
func Uint8(a, _ int64) int64  { return int64(uint8(a)) }
func Uint16(a, _ int64) int64 { return int64(uint16(a)) }
func Uint32(a, b int64) int64 { return int64(uint32(a + b)) }

// FromUnsigned turns the highest bit into a sign.
func FromUnsigned(a, _ int64) int64 { return int64(int8(uint8(a))) }

// Sets uses bit operations on unsigned numbers.
func Sets(a, b int64) int64 {
	x, y := uint16(a), uint16(b)
	return int64(x&y) + int64(x|y)*3 + int64(x&^y)*5
}

// Signed uses bit operations on signed numbers.
func Signed(a, b int64) int64 {
	x, y := int32(a), int32(b)
	return int64(x&y) + int64(x|y)*3 + int64(x&^y)*5
}

// Low masks the lowest bits of large numbers.
func Low(a, b int64) int64 { return a&0xfff + b&0x7fffffff }

// Product stays below 2^53.
func Product(a, b int64) int64 { return a % 90_000_000 * (b % 90_000_000) }

// Smaller uses min and max.
func Smaller(a, b int64) int64 { return min(a, b, 7)*2 + max(a, b) - max(a, -b, 3) }

// Loop uses continue.
func Loop(a, b int64) int64 {
	sum := int64(0)
	for i := range int64(20) {
		if (a+i)%3 == 0 {
			continue
		}
		sum += i * (b % 1000)
	}
	return sum
}

// Hide declares a variable in the body of a loop that hides the loop variable.
func Hide(a, b int64) (sum int64) {
	for i := int64(0); i < 5; i++ {
		i := i*2 + a%7
		sum += i
	}
	for k := int64(0); k < 4; k++ {
		var twice = k * 2
		sum += twice
	}
	{
		sum := sum + b%5
		if sum > 10 {
			return sum
		}
	}
	return sum
}

// Leave uses break in a nested loop.
func Leave(a, b int64) int64 {
	n := int64(0)
	for i := a % 10; i < 15; i++ {
		for k := int64(0); ; k++ {
			if k > b%7 {
				break
			}
			n += k
		}
		if n > 40 {
			return n
		}
	}
	return -n
}

// Choose uses switch, with several values in a case and with default.
func Choose(a, b int64) int64 {
	switch x := a % 5; {
	case x < 0, b < 0:
		return 1
	case x == 2:
		b++
	default:
		b--
	}
	switch b % 3 {
	case 0, 1:
		return b
	}
	return -b
}

// Swap assigns two variables in one statement.
func Swap(a, b int64) int64 {
	for range 3 {
		a, b = b, a-b
	}
	return a*2 - b
}

type pair struct{ x, y int64 }

func (p *pair) turn() { p.x, p.y = p.y, p.x+1 }

func (p pair) sum() int64 { p.x *= 2; return p.x + p.y }

// Pairs are copied where Go copies them.
func Pairs(a, b int64) int64 {
	p := pair{a, b}
	q := p
	q.turn()
	r := &p
	r.turn()
	r.x += 5
	return p.x*3 + q.x - q.y + p.sum()*7 + p.y
}

type box struct {
	n     int64
	pairs [3]pair
	flag  bool
}

// Inner uses structs in arrays in structs.
func Inner(a, b int64) int64 {
	var x box
	x.pairs[1] = pair{a, b}
	x.pairs[2].y = a - b
	x.n = b
	y := x
	y.pairs[1].x++
	y.flag = a > b
	in := &x.pairs[2]
	in.x += 4
	n := y.n
	for i := range x.pairs {
		n = n*3 + x.pairs[i].x - y.pairs[i].x + x.pairs[i].y
	}
	if y.flag && !x.flag {
		n++
	}
	return n
}

func two(a, b int64) (sum, difference int64) {
	sum = a + b
	if a > b {
		return sum, a - b
	}
	difference = b - a
	return
}

// Named calls a function with named results.
func Named(a, b int64) int64 {
	s, d := two(a, b)
	return s*2 + d
}

type list struct{ all []int64 }

// List appends to a slice.
func List(a, b int64) int64 {
	l := list{all: nil}
	return l.fill(a, b)
}

func (l *list) fill(a, b int64) int64 {
	l.all = l.all[:0]
	for i := range int64(4) {
		l.all = append(l.all, a+i*(b%100))
	}
	n := int64(len(l.all))
	for i, x := range l.all {
		n += x - int64(i)
	}
	return n
}
