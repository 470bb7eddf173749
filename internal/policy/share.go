package policy

// MaxClasses bounds the number of classes.
const MaxClasses = 8

// Shares are what classes are guaranteed of a stock, and what they have used of it. A class
// without a weight is none.
type Shares struct {
	Size    int64
	Weights [MaxClasses]int64
	Used    [MaxClasses]int64
	Alive   uint16 // set of classes with an agent that is alive
}

// Guaranteed returns a class's share among those that are alive, rounded down: the sum over
// all classes is never more than the size.
func (s *Shares) Guaranteed(class int) int64 {
	if s.Alive&(1<<class) == 0 {
		return 0
	}
	var sum int64
	for i, w := range s.Weights {
		if s.Alive&(1<<i) != 0 {
			sum += w
		}
	}
	return s.Size/sum*s.Weights[class] + s.Size%sum*s.Weights[class]/sum
}

// unused returns what a class has left of its share.
func (s *Shares) unused(class int) int64 {
	return max(s.Guaranteed(class)-s.Used[class], 0)
}

// Floor returns what a class must leave to the others: what they have not used of their
// shares. Who has had its own share and borrows leaves what the light asks for as well,
// which is meant for the highest class and part of that one's share, if it has any; otherwise
// the light and not the share would decide who gets what is left.
func (s *Shares) Floor(class int, light int64) int64 {
	var highest, others int64
	for i := range s.Weights {
		switch i {
		case class:
		case 0:
			highest = s.unused(i)
		default:
			others += s.unused(i)
		}
	}
	if s.Used[class] >= s.Guaranteed(class) && highest+others > 0 {
		highest = max(highest, light)
	}
	return highest + others
}

// Allocated returns what one of a class's agents has, if the class has so many that are
// alive.
func (s *Shares) Allocated(class, agents int) int64 {
	return s.Guaranteed(class) / int64(max(agents, 1))
}
