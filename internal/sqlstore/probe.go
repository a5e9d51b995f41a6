package sqlstore

import (
	"crypto/rand"
	"encoding/hex"
)

// A probe is a row beside the heartbeats that is written and removed again
// after a commit failed: a beat alone is so small that even a full disk may
// have room for it.
const (
	putProbe = `INSERT INTO replicas (id, at, report) VALUES ($1, 0, $2)
		ON CONFLICT (id) DO UPDATE SET report = excluded.report`
	dropProbe = "DELETE FROM replicas WHERE id = $1"
	probeName = "probe of "
	probeSize = 128 << 10
)

// probeText does not compress to less than half.
func probeText() string {
	noise := make([]byte, probeSize/2)
	_, _ = rand.Read(noise) // never fails
	return hex.EncodeToString(noise)
}
