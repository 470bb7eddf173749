package policy

// PlanPace is what all classes but the highest leave of a subscription's window while a person uses it, in
// thousandths. It sinks to 0 at the reset: a fifth may go at once, the rest at an even pace.
const PlanPace = 800

// planEase bounds how long lower classes are eased in after a reset, in microseconds.
const planEase = 900_000_000

// Ease returns how long lower classes are eased in after the reset of a window.
func Ease(window int64) int64 { return min(planEase, window/20) }

// EaseFloor returns what lower classes leave after a window has opened: all of it at first, and four fifths at the
// end. So requests that waited for the reset do not all go at that moment.
func EaseFloor(size, opened, eased int64) Floor {
	return Floor{Amount: size, Over: 5 * eased, Until: opened + 5*eased}
}
