package policy

// TestFailure is a statement of the policy about itself that does not hold.
type TestFailure struct {
	Line Line // of the test
	Src  string
	Dst  string
	Want string // accept, check or deny
	Text string // names the test, what happened, and the rule by which it did
}

// RunTests returns the tests of the document that do not hold.
func (w *World) RunTests() []TestFailure { return nil }
