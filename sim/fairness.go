package sim

// fairness measures how evenly the agents of one class are served. A slice of a class is
// as many acceptances as give each agent ten; only agents that had work left in all of a
// slice count, because others did not ask for more.
type fairness struct {
	classes [][]*served // by class
	of      []*served   // by agent
	got     []int       // acceptances in the current slice, by class
	sum     float64     // of the indices of slices
	slices  int
}

// served is one agent in the current slice of its class.
type served struct {
	left int  // demanded and neither accepted nor given up
	idle bool // it had nothing left at some time of the slice
	got  int
}

// perSlice is how many acceptances a slice has for each agent: with fewer, one more or less would count much.
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

// cut ends a slice.
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

// index is the mean of all slices; nil: there was none.
func (f *fairness) index() *float64 {
	if f.slices == 0 {
		return nil
	}
	mean := round(f.sum / float64(f.slices))
	return &mean
}
