package fence

import (
	"cmp"
	"fmt"
	"slices"
	"sync"
)

// Unreachable returns the peers that did not answer two questions in a row, or could not
// be asked.
func (f *Fence) Unreachable() []Peer { return f.silences.list() }

// Warnings returns, for each unreachable peer, what to do about it.
func (f *Fence) Warnings() (texts []string) {
	for _, p := range f.Unreachable() {
		texts = append(texts, fmt.Sprintf("replica %s %s", p.ID, p.problem()))
	}
	return texts
}

// problem returns why a peer is unreachable, and what to do.
func (p Peer) problem() string {
	if p.URL == "" {
		return "does not publish a URL, so this replica cannot contact it; upgrade it if it runs an older release"
	}
	return "does not answer this replica; set replica_url there, or open its port to the other replicas"
}

// silences counts the consecutive questions that peers did not answer.
type silences struct {
	mu    sync.Mutex
	peers map[string]silence // guarded by mu; by the ID of the peer
}

type silence struct {
	peer  Peer
	count int
}

const silent = 2 // from this count on, a peer is unreachable; a replica that was stopped is soon no longer a peer

// note records the answers of one round, and returns the peers that have become
// unreachable in it.
func (s *silences) note(peers []Peer, answers []*answer) (lost []Peer) {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := map[string]silence{}
	for i, p := range peers {
		if answers[i] != nil {
			continue
		}
		n := s.peers[p.ID].count + 1
		if now[p.ID] = (silence{p, n}); n == silent {
			lost = append(lost, p)
		}
	}
	s.peers = now
	return lost
}

func (s *silences) list() (peers []Peer) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, p := range s.peers {
		if p.count >= silent {
			peers = append(peers, p.peer)
		}
	}
	slices.SortFunc(peers, func(a, b Peer) int { return cmp.Compare(a.ID, b.ID) })
	return peers
}
