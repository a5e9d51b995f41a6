package mesh

import (
	"net/netip"
	"slices"

	"tailscale.com/util/dnsname"
)

// Reservation keeps a name and addresses for a device that has not joined yet. The device
// gets them, and the reservation ends, when it joins with the same hostname and for the same
// user, or with the same tags. Until then, no other node gets them.
type Reservation struct {
	ID   ReservationID `json:"id"`
	Name string        `json:"name"`
	// Hostname is what the device calls itself. Names of DNS labels are compared, so case and
	// punctuation do not matter.
	Hostname string `json:"hostname"`
	// User will own the node. It is zero if the node has Tags.
	User UserID   `json:"user,omitempty" column:"user_id"`
	Tags []string `json:"tags,omitempty"`
	// The addresses are invalid if any address will do.
	IPv4      netip.Addr `json:"ipv4,omitzero" column:"ipv4"`
	IPv6      netip.Addr `json:"ipv6,omitzero" column:"ipv6"`
	CreatedAt Time       `json:"createdAt"`
}

// ReservationPut adds or replaces a reservation.
type ReservationPut struct {
	Reservation *Reservation `json:"reservation"`
}

// Kind names the event in the log.
func (ReservationPut) Kind() Kind { return KindReservationPut }

func (e ReservationPut) valid() bool       { return e.Reservation != nil && valid(e.Reservation.ID) }
func (e ReservationPut) count(c *Counters) { c.Reservation = max(c.Reservation, e.Reservation.ID) }
func (e ReservationPut) apply(d *Draft)    { d.s.Reservations.keep(d.e, e.Reservation.ID, e.Reservation) }

// ReservationGone removes a reservation.
type ReservationGone struct {
	ID ReservationID `json:"id"`
}

// Kind names the event in the log.
func (ReservationGone) Kind() Kind       { return KindReservationGone }
func (e ReservationGone) valid() bool    { return valid(e.ID) }
func (e ReservationGone) apply(d *Draft) { d.s.Reservations.keep(d.e, e.ID, nil) }

// Reservations holds all reservations of a snapshot.
type Reservations struct {
	Table[ReservationID, Reservation]
	byName index[string, ReservationID]
	byAddr index[netip.Addr, ReservationID]
}

func newReservations() Reservations {
	return Reservations{byName: newIndex[string, ReservationID](), byAddr: newIndex[netip.Addr, ReservationID]()}
}

func (s *Reservations) keep(e *edit, id ReservationID, r *Reservation) {
	if old := s.at(id); old != nil {
		for _, a := range old.Addrs() {
			release(e, &s.byAddr, a, id)
		}
	}
	if r != nil {
		for _, a := range r.Addrs() {
			s.byAddr.put(e, a, id)
		}
	}
	keep(e, &s.Table, &s.byName, id, r, func(r *Reservation) string { return r.Name })
}

// ByName finds the reservation of a name.
func (s *Reservations) ByName(name string) (*Reservation, bool) { return s.lookup(s.byName.at(name)) }

// ByAddr finds the reservation of an address.
func (s *Reservations) ByAddr(a netip.Addr) (*Reservation, bool) { return s.lookup(s.byAddr.at(a)) }

// For returns the oldest reservation for a device with this hostname that joins for a user, or
// with tags, or nil if there is none. It reads all reservations.
func (s *Reservations) For(hostname string, user UserID, tags []string) *Reservation {
	host := dnsname.SanitizeHostname(hostname)
	if host == "" {
		return nil
	}
	for r := range s.All() {
		if dnsname.SanitizeHostname(r.Hostname) != host {
			continue
		}
		if len(tags) > 0 && slices.Equal(r.Tags, tags) || len(tags) == 0 && len(r.Tags) == 0 && r.User == user {
			return r
		}
	}
	return nil
}

// Addrs returns the addresses that are reserved.
func (r *Reservation) Addrs() []netip.Addr {
	return slices.DeleteFunc([]netip.Addr{r.IPv4, r.IPv6}, func(a netip.Addr) bool { return !a.IsValid() })
}

// NamedAfter reports whether the reserved name is the one that a device with this hostname
// would get anyway.
func (r *Reservation) NamedAfter(hostname string) bool {
	return r.Name == dnsname.SanitizeHostname(hostname)
}
