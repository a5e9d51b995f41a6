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

func receiptCount(s *mesh.Snapshot) (n int) {
	for range s.Receipts() {
		n++
	}
	return n
}

func TestOldestReceiptsMakeRoom(t *testing.T) {
	s := mesh.Empty()
	for n := range uint64(mesh.MaxOwnerReceipts + 2) {
		s = remember(s, meshgen.Start, once("key:1", n))
	}
	for n, want := range map[uint64]bool{0: false, 1: false, 2: true, mesh.MaxOwnerReceipts + 1: true} {
		if _, ok := s.Receipt(once("key:1", n)); ok != want {
			t.Errorf("request %d is remembered: %v", n, ok)
		}
	}
	d := s.Edit()
	for n := range uint64(mesh.MaxReceipts) {
		d.Apply(s.Rev+mesh.Revision(n)+1, mesh.Remember(d.Snapshot(), meshgen.Start, once("key:"+string(rune('A'+n/900)), n), "7")...)
	}
	if s = d.Freeze(); receiptCount(s) != mesh.MaxReceipts {
		t.Errorf("%d receipts", receiptCount(s))
	}
	if _, ok := s.Receipt(once("key:1", mesh.MaxOwnerReceipts+1)); ok {
		t.Error("the oldest of all is still there")
	}
}

func TestReceiptThatEndedIsReplaced(t *testing.T) {
	s := remember(mesh.Empty(), meshgen.Start, once("key:1", 1))
	s = remember(s, meshgen.Start.Add(mesh.ReceiptLifetime+time.Second), once("key:1", 1))
	m, ok := s.Receipt(once("key:1", 1))
	if !ok || m.ID != 2 || receiptCount(s) != 1 {
		t.Fatalf("%v, %d receipts", m, receiptCount(s))
	}
	if s, _ = mesh.Apply(s, s.Rev+1, mesh.Forgotten{ID: m.ID}); receiptCount(s) != 0 {
		t.Error("not forgotten")
	}
	if _, ok := s.Receipt(once("key:1", 1)); ok {
		t.Error("still found")
	}
}
