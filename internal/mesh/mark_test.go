package mesh_test

import (
	"encoding/binary"
	"testing"
	"time"

	"github.com/fairlead-mesh/fairlead/internal/mesh"
	"github.com/fairlead-mesh/fairlead/internal/mesh/meshgen"
)

func once(owner string, n uint64) *mesh.Once {
	o := &mesh.Once{Owner: owner}
	binary.BigEndian.PutUint64(o.Key[:], n)
	return o
}

func remember(s *mesh.Snapshot, now mesh.Time, o *mesh.Once) *mesh.Snapshot {
	s, _ = mesh.Apply(s, s.Rev+1, mesh.Remember(s, now, o, "7")...)
	return s
}

func markCount(s *mesh.Snapshot) (n int) {
	for range s.Marks() {
		n++
	}
	return n
}

func TestOldestMarksMakeRoom(t *testing.T) {
	s := mesh.Empty()
	for n := range uint64(mesh.MaxOwnerMarks + 2) {
		s = remember(s, meshgen.Start, once("key:1", n))
	}
	for n, want := range map[uint64]bool{0: false, 1: false, 2: true, mesh.MaxOwnerMarks + 1: true} {
		if _, ok := s.Mark(once("key:1", n)); ok != want {
			t.Errorf("request %d is remembered: %v", n, ok)
		}
	}
	d := s.Edit()
	for n := range uint64(mesh.MaxMarks) {
		d.Apply(s.Rev+mesh.Revision(n)+1, mesh.Remember(d.Snapshot(), meshgen.Start, once("key:"+string(rune('A'+n/900)), n), "7")...)
	}
	if s = d.Freeze(); markCount(s) != mesh.MaxMarks {
		t.Errorf("%d marks", markCount(s))
	}
	if _, ok := s.Mark(once("key:1", mesh.MaxOwnerMarks+1)); ok {
		t.Error("the oldest of all is still there")
	}
}

func TestMarkThatEndedIsReplaced(t *testing.T) {
	s := remember(mesh.Empty(), meshgen.Start, once("key:1", 1))
	s = remember(s, meshgen.Start.Add(mesh.MarkLifetime+time.Second), once("key:1", 1))
	m, ok := s.Mark(once("key:1", 1))
	if !ok || m.ID != 2 || markCount(s) != 1 {
		t.Fatalf("%v, %d marks", m, markCount(s))
	}
	if s, _ = mesh.Apply(s, s.Rev+1, mesh.Forgotten{ID: m.ID}); markCount(s) != 0 {
		t.Error("not forgotten")
	}
	if _, ok := s.Mark(once("key:1", 1)); ok {
		t.Error("still found")
	}
}
