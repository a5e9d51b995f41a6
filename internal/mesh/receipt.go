package mesh

import (
	"crypto/sha256"
	"slices"
	"strings"
	"time"
)

// How many receipts are kept, and for how long. New receipts replace the oldest, but none
// younger than ReceiptMinimum: retries come within minutes, and applying a change twice is
// worse than making a request wait.
const (
	ReceiptLifetime  = 24 * time.Hour
	ReceiptMinimum   = 5 * time.Minute
	MaxReceipts      = 50_000
	MaxOwnerReceipts = 10_000
)

// The limits for receipts of sign-ins. What a sign-in keeps outside the server, such as a
// cookie, is valid for ten minutes, so that its receipt has to be kept for longer. Each
// person or network has its own limit, which is low because nobody signs in often: one of
// them cannot make others wait.
const (
	SignInReceiptMinimum = 15 * time.Minute
	MaxSignInReceipts    = 500
	signInOwner          = "sign-in "
)

// SignInOnce identifies a step of a sign-in that must not be repeated. who is the person or
// the network that it counts against, and id is unique.
func SignInOnce(who, id, request string) *Once {
	return &Once{Owner: signInOwner + who, Key: sha256.Sum256([]byte(id)), Request: sha256.Sum256([]byte(request))}
}

// receiptLimits returns how many receipts of an owner are kept, and for how long at least.
func receiptLimits(owner string) (most int, minimum time.Duration) {
	if strings.HasPrefix(owner, signInOwner) {
		return MaxSignInReceipts, SignInReceiptMinimum
	}
	return MaxOwnerReceipts, ReceiptMinimum
}

// Once identifies a request that must not be executed twice. Owner is who made it, Key is
// the idempotency key and Request the whole request. Only hashes of the latter two are
// kept.
type Once struct {
	Owner        string
	Key, Request Secret
}

// Receipt records that a request was executed.
type Receipt struct {
	ID      ReceiptID `json:"id"`
	Owner   string    `json:"owner"`
	Key     Secret    `json:"key"`
	Request Secret    `json:"request"`
	Rev     Revision  `json:"rev"` // revision of the change that the request made
	// Object is the id of the object that the request changed; empty if it changed
	// nothing.
	Object string `json:"object,omitempty"`
	// Answer is the rest of the response.
	Answer string `json:"answer,omitempty"`
	Until  Time   `json:"until"`
}

// receiptKey is the lookup key of receipts.
type receiptKey struct {
	owner string
	key   Secret
}

func (m *Receipt) lookupKey() receiptKey { return receiptKey{m.Owner, m.Key} }

// ReceiptPut adds the receipt of a request that was executed.
type ReceiptPut struct {
	Receipt *Receipt `json:"receipt"`
}

// Kind names the event in the log.
func (ReceiptPut) Kind() Kind          { return KindReceiptPut }
func (e ReceiptPut) valid() bool       { return e.Receipt != nil && valid(e.Receipt.ID) }
func (e ReceiptPut) count(c *Counters) { c.Receipt = max(c.Receipt, e.Receipt.ID) }
func (e ReceiptPut) apply(d *Draft)    { d.putReceipt(e.Receipt.ID, e.Receipt) }

// ReceiptGone removes the receipt of a request.
type ReceiptGone struct {
	ID ReceiptID `json:"id"`
}

// Kind names the event in the log.
func (ReceiptGone) Kind() Kind       { return KindReceiptGone }
func (e ReceiptGone) valid() bool    { return valid(e.ID) }
func (e ReceiptGone) apply(d *Draft) { d.putReceipt(e.ID, nil) }

func (d *Draft) putReceipt(id ReceiptID, m *Receipt) {
	if old := d.s.Receipts.at(id); old != nil {
		dropID(d.e, &d.s.Receipts.byOwner, old.Owner, id)
	}
	if m != nil {
		addID(d.e, &d.s.Receipts.byOwner, m.Owner, id)
	}
	keep(d.e, &d.s.Receipts.Table, &d.s.Receipts.byKey, id, m, (*Receipt).lookupKey)
}

// Receipts holds all receipts of a snapshot, oldest first.
type Receipts struct {
	Table[ReceiptID, Receipt]
	byKey   index[receiptKey, ReceiptID]
	byOwner index[string, []ReceiptID]
}

func newReceipts() Receipts {
	return Receipts{byKey: newIndex[receiptKey, ReceiptID](), byOwner: newIndex[string, []ReceiptID]()}
}

// For returns the receipt for this owner and key. It may have expired.
func (s *Receipts) For(o *Once) (*Receipt, bool) {
	if o == nil {
		return nil, false
	}
	return s.lookup(s.byKey.at(receiptKey{o.Owner, o.Key}))
}

// ReceiptWait returns how long a request must wait until there is room for its
// receipt; zero if there is room.
func ReceiptWait(s *Snapshot, now Time, o *Once) time.Duration {
	if _, ok := s.Receipts.For(o); ok {
		return 0 // it would replace its own receipt
	}
	var oldest *Receipt
	most, _ := receiptLimits(o.Owner)
	if own, _ := s.Receipts.byOwner.at(o.Owner); len(own) >= most {
		oldest = s.Receipts.at(slices.Min(own))
	} else if s.Receipts.count >= MaxReceipts {
		for m := range s.Receipts.All() {
			oldest = m
			break
		}
	}
	if oldest == nil {
		return 0
	}
	_, minimum := receiptLimits(oldest.Owner)
	return max(0, oldest.Until.Add(minimum-ReceiptLifetime).Sub(now))
}

// Remember returns the events that store the receipt of a request executed in the revision
// after s, with the object that it changed and the rest of its response. Older receipts
// are removed to make room for it.
func Remember(s *Snapshot, now Time, o *Once, object, answer string) (evs []Event) {
	gone := map[ReceiptID]bool{}
	forget := func(id ReceiptID) {
		if !gone[id] {
			gone[id] = true
			evs = append(evs, ReceiptGone{ID: id})
		}
	}
	if ended, ok := s.Receipts.For(o); ok {
		forget(ended.ID)
	}
	most, _ := receiptLimits(o.Owner)
	if own, _ := s.Receipts.byOwner.at(o.Owner); len(own) >= most {
		forget(slices.Min(own))
	}
	if s.Receipts.count >= MaxReceipts {
		for m := range s.Receipts.All() {
			forget(m.ID)
			break
		}
	}
	return append(evs, ReceiptPut{Receipt: &Receipt{
		ID: s.Counters.Receipt + 1, Owner: o.Owner, Key: o.Key, Request: o.Request, Rev: s.Rev + 1,
		Object: object, Answer: answer, Until: now.Add(ReceiptLifetime),
	}})
}
