//go:build !race

package deploytest

import "testing"

func TestDevelopmentStackBecomesHealthy(t *testing.T) {
	s := NewStack(t, nil)
	s.Setup("--dev")
	s.WaitHealthy()
}
