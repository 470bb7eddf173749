package policy

// Guaranteed returns class's share of size among the classes that are alive, rounded down:
// the sum over all classes is never more than size.
func Guaranteed(size int64, weights []int64, alive uint16, class int) int64 {
	if alive&(1<<class) == 0 {
		return 0
	}
	var sum int64
	for i, w := range weights {
		if alive&(1<<i) != 0 {
			sum += w
		}
	}
	return size/sum*weights[class] + size%sum*weights[class]/sum
}

// Unused returns what the classes other than class have not used of their shares: what class
// must leave to them.
func Unused(size int64, weights, used []int64, alive uint16, class int) (left int64) {
	for i := range weights {
		if i != class {
			left += max(Guaranteed(size, weights, alive, i)-used[i], 0)
		}
	}
	return left
}

// Allocated returns what one of a class's agents has of size, if the class has so many that
// are alive.
func Allocated(size int64, weights []int64, alive uint16, class, agents int) int64 {
	return Guaranteed(size, weights, alive, class) / int64(max(agents, 1))
}
