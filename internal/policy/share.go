package policy

// MaxClasses bounds the number of classes.
const MaxClasses = 8

// Shares are the guaranteed parts of a stock by class, and what each class has used. A class with weight 0 does not
// exist.
type Shares struct {
	Size    int64
	Weights [MaxClasses]int64
	Used    [MaxClasses]int64
	Alive   uint16 // set of classes with a live agent
}

// Guaranteed returns a class's share among the live classes, rounded down. The sum over all classes never exceeds
// the size.
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

// Floor returns what a class must leave to the others: the unused parts of their shares. A class that has used its
// own share and borrows must also leave what the light asks for. That amount is meant for the highest class and is
// part of its share, if it has one. Otherwise the light, not the share, would decide which class gets the rest.
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

// Allocated returns the share of one agent of a class with so many live agents.
func (s *Shares) Allocated(class, agents int) int64 {
	return s.Guaranteed(class) / int64(max(agents, 1))
}
