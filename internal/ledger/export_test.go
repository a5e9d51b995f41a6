package ledger

import "time"

// ObserveAt makes the ledger assume that the process last ran at that time.
func (l *Ledger) ObserveAt(at time.Time) {
	l.pause.mu.Lock()
	defer l.pause.mu.Unlock()
	l.pause.awake = at
}
