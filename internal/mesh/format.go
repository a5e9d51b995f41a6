package mesh

// formatOf returns the format that a binary must know to read an event without losing
// anything, or 0 if every release does. It names what was added after the first release: a new
// kind of event, and each new field that is set. A field that is not set is not written, so it
// needs no new format.
//
// An addition raises Format by one, once per release, and gets a case here, such as
//
//	case RobotPut:
//		return 2
//	case NodePut:
//		if e.Node.Colour != "" {
//			return 2
//		}
func formatOf(e Event) int {
	return nextFormat(e)
}

// FormatOf returns the format that a binary must know to read all these events.
func FormatOf(evs []Event) (needed int) {
	for _, e := range evs {
		needed = max(needed, formatOf(e))
	}
	return needed
}
