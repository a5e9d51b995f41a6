package waittest

import (
	"bytes"
	"sync"
	"testing"
	"time"
)

// Eventually retries until try succeeds, and fails the test with the last error if that takes longer than
// limit.
func Eventually(t testing.TB, limit, every time.Duration, try func() error) {
	t.Helper()
	deadline := time.After(limit)
	for {
		err := try()
		if err == nil {
			return
		}
		select {
		case <-deadline:
			t.Fatalf("after %v: %v", limit, err)
		case <-time.After(every):
		}
	}
}

// Transcript collects output and may be read at any time.
type Transcript struct {
	mu   sync.Mutex
	text bytes.Buffer // guarded by mu
}

// Write implements io.Writer.
func (w *Transcript) Write(b []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.text.Write(b)
}

// String returns everything written so far.
func (w *Transcript) String() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.text.String()
}
