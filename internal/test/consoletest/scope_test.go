//go:build !race

package consoletest

import (
	"fmt"
	"slices"
	"sync"
	"testing"
)

// scope is a part of a test that ends before the test does. Everything that was started for it is
// stopped with it, and a failure is reported to the caller instead of ending the test.
type scope struct {
	testing.TB

	mu      sync.Mutex
	ends    []func()
	failure error
}

// failure is what Fatal panics with.
type failure struct{ error }

func (s *scope) Helper() {}

func (s *scope) Cleanup(f func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.ends = append(s.ends, f)
}

func (s *scope) Failed() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.failure != nil
}

func (s *scope) Error(args ...any) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.failure = fmt.Errorf("%s", fmt.Sprint(args...))
}

func (s *scope) Errorf(format string, args ...any) { s.Error(fmt.Sprintf(format, args...)) }

func (s *scope) Fatal(args ...any) {
	s.Error(args...)
	s.FailNow()
}

func (s *scope) Fatalf(format string, args ...any) { s.Fatal(fmt.Sprintf(format, args...)) }

func (s *scope) FailNow() {
	s.mu.Lock()
	defer s.mu.Unlock()
	panic(failure{s.failure})
}

// try runs part and returns its failure as an error.
func (s *scope) try(part func() error) (err error) {
	defer func() {
		switch problem := recover().(type) {
		case nil:
		case failure:
			err = problem
		default:
			panic(problem)
		}
	}()
	return part()
}

// end runs the cleanups, the last one first.
func (s *scope) end() {
	s.mu.Lock()
	ends := s.ends
	s.ends = nil
	s.mu.Unlock()
	slices.Reverse(ends)
	for _, f := range ends {
		f()
	}
}
