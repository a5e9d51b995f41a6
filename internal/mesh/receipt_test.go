package mesh_test

import (
	"encoding/binary"
	"strconv"
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
	s, _ = mesh.Apply(s, s.Rev+1, mesh.Remember(s, now, o, "7", "")...)
	return s
}

func receiptCount(s *mesh.Snapshot) (n int) {
	for range s.Receipts.All() {
		n++
	}
	return n
}

func TestOldestReceiptsMakeRoom(t *testing.T) {
	d := mesh.Empty().Edit()
	for n := range uint64(mesh.MaxOwnerReceipts + 2) {
		d.Apply(mesh.Revision(n)+1, mesh.Remember(d.Snapshot(), meshgen.Start, once("key:1", n), "7", "")...)
	}
	s := d.Freeze()
	for n, want := range map[uint64]bool{0: false, 1: false, 2: true, mesh.MaxOwnerReceipts + 1: true} {
		if _, ok := s.Receipts.For(once("key:1", n)); ok != want {
			t.Errorf("request %d is remembered: %v", n, ok)
		}
	}
	d = s.Edit()
	for n := range uint64(mesh.MaxReceipts) {
		d.Apply(s.Rev+mesh.Revision(n)+1, mesh.Remember(d.Snapshot(), meshgen.Start, once("key:"+string(rune('A'+n/900)), n), "7", "")...)
	}
	if s = d.Freeze(); receiptCount(s) != mesh.MaxReceipts {
		t.Errorf("%d receipts", receiptCount(s))
	}
	if _, ok := s.Receipts.For(once("key:1", mesh.MaxOwnerReceipts+1)); ok {
		t.Error("the oldest of all is still there")
	}
}

// Retries come within minutes. Younger receipts are not removed to make room.
func TestYoungReceiptsAreKept(t *testing.T) {
	half := meshgen.Start.Add(mesh.ReceiptMinimum / 2)
	d := mesh.Empty().Edit()
	for n := range uint64(mesh.MaxOwnerReceipts) {
		d.Apply(mesh.Revision(n)+1, mesh.Remember(d.Snapshot(), meshgen.Start, once("key:1", n), "7", "")...)
	}
	s := d.Freeze()
	for name, c := range map[string]struct {
		now  mesh.Time
		once *mesh.Once
		want time.Duration
	}{
		"another request":          {half, once("key:1", mesh.MaxOwnerReceipts), mesh.ReceiptMinimum / 2},
		"the same request":         {half, once("key:1", 0), 0},
		"another key":              {half, once("key:2", 0), 0},
		"when the oldest is older": {meshgen.Start.Add(mesh.ReceiptMinimum), once("key:1", mesh.MaxOwnerReceipts), 0},
	} {
		if got := mesh.ReceiptWait(s, c.now, c.once); got != c.want {
			t.Errorf("%s waits %v, want %v", name, got, c.want)
		}
	}
}

// A copy of a sign-in stays valid for ten minutes, and one person must not make others wait.
func TestSignInsOfOnePersonAreKeptLongEnoughAndDelayNobodyElse(t *testing.T) {
	signIn := func(who string, n int) *mesh.Once { return mesh.SignInOnce(who, strconv.Itoa(n), "") }
	d := mesh.Empty().Edit()
	for n := range mesh.MaxSignInReceipts {
		d.Apply(mesh.Revision(n)+1, mesh.Remember(d.Snapshot(), meshgen.Start, signIn("ann", n), "7", "")...)
	}
	s := d.Freeze()
	late := meshgen.Start.Add(11 * time.Minute)
	if got, want := mesh.ReceiptWait(s, late, signIn("ann", -1)), mesh.SignInReceiptMinimum-11*time.Minute; got != want {
		t.Errorf("the same person waits %v, want %v", got, want)
	}
	if got := mesh.ReceiptWait(s, meshgen.Start, signIn("bob", -1)); got != 0 {
		t.Errorf("another person waits %v", got)
	}
	s = remember(s, meshgen.Start.Add(mesh.SignInReceiptMinimum), signIn("ann", -1))
	if _, ok := s.Receipts.For(signIn("ann", 0)); ok || receiptCount(s) != mesh.MaxSignInReceipts {
		t.Errorf("the oldest is kept: %t, %d receipts", ok, receiptCount(s))
	}
}

func TestReceiptThatEndedIsReplaced(t *testing.T) {
	s := remember(mesh.Empty(), meshgen.Start, once("key:1", 1))
	s = remember(s, meshgen.Start.Add(mesh.ReceiptLifetime+time.Second), once("key:1", 1))
	m, ok := s.Receipts.For(once("key:1", 1))
	if !ok || m.ID != 2 || receiptCount(s) != 1 {
		t.Fatalf("%v, %d receipts", m, receiptCount(s))
	}
	if s, _ = mesh.Apply(s, s.Rev+1, mesh.ReceiptGone{ID: m.ID}); receiptCount(s) != 0 {
		t.Error("not forgotten")
	}
	if _, ok := s.Receipts.For(once("key:1", 1)); ok {
		t.Error("still found")
	}
}
