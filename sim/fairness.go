package sim

// fairness measures how evenly the agents of one class are served. It divides a run into slices. A slice of a class
// ends when the class has ten acceptances per agent. Only agents that had work left during the whole slice count,
// because the others did not ask for more.
type fairness struct {
	classes [][]*served // by class
	of      []*served   // by agent
	got     []int       // acceptances in the current slice, by class
	sum     float64     // of the indices of all slices
	slices  int
}

// served is the state of one agent in the current slice of its class.
type served struct {
	left int  // calls demanded and neither accepted nor given up
	idle bool // it had no work left at some time in the slice
	got  int
}

// perSlice is the number of acceptances per agent in a slice. With fewer, a single one would weigh too much.
const perSlice = 10

func newFairness(sc *Scenario) *fairness {
	f := &fairness{classes: make([][]*served, len(sc.classes())), got: make([]int, len(sc.classes()))}
	for i := range sc.Fleet {
		one := &served{idle: true}
		f.of = append(f.of, one)
		f.classes[sc.Fleet[i].Class] = append(f.classes[sc.Fleet[i].Class], one)
	}
	return f
}

func (f *fairness) demanded(a *arrival) {
	if f != nil {
		f.of[a.agent.index].left += a.n
	}
}

func (f *fairness) satisfied(c *call, accepted bool) {
	if f == nil {
		return
	}
	one, class := f.of[c.agent.index], c.agent.Class
	if accepted {
		one.got++
		f.got[class]++
	}
	if one.left--; one.left == 0 {
		one.idle = true
	}
	if f.got[class] >= perSlice*len(f.classes[class]) {
		f.cut(class)
	}
}

// cut ends a slice and adds its index.
func (f *fairness) cut(class int) {
	n, sum, squares := 0.0, 0.0, 0.0
	for _, one := range f.classes[class] {
		if !one.idle {
			x := float64(one.got)
			n, sum, squares = n+1, sum+x, squares+x*x
		}
		one.got, one.idle = 0, one.left == 0
	}
	f.got[class] = 0
	if n >= 2 && squares > 0 {
		f.sum += sum * sum / (n * squares)
		f.slices++
	}
}

// index returns the mean index of all slices, or nil if there are none.
func (f *fairness) index() *float64 {
	if f.slices == 0 {
		return nil
	}
	return new(round(f.sum / float64(f.slices)))
}
