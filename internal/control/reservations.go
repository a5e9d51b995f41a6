package control

import (
	"context"
	"net/netip"
	"strconv"
	"strings"

	"github.com/fairlead-mesh/fairlead/internal/mesh"
	"github.com/fairlead-mesh/fairlead/internal/policy"
)

// maxReservations limits the reservations that a joining device is compared with.
const maxReservations = 100_000

// Reservations implements the use cases for names and addresses of devices that have not
// joined yet.
type Reservations struct{ *core }

// NewReservation describes a reservation to create.
type NewReservation struct {
	Name string
	// Hostname defaults to Name.
	Hostname string
	// The node will belong to User or have Tags, never both.
	User       string
	Tags       []string
	IPv4, IPv6 netip.Addr // invalid: any address
}

// Create reserves a name, and addresses if they are given.
func (s *Reservations) Create(ctx context.Context, a mesh.Actor, in NewReservation) (*mesh.Reservation, error) {
	in.Name = strings.ToLower(in.Name)
	if err := checkNodeName("name", in.Name); err != nil {
		return nil, err
	}
	if in.Hostname == "" {
		in.Hostname = in.Name
	}
	if err := checkText("hostname", in.Hostname, maxHostname); err != nil {
		return nil, err
	}
	tags, err := checkTags("tags", in.Tags)
	if err != nil {
		return nil, err
	}
	if (in.User == "") == (len(tags) == 0) {
		return nil, refuse(Invalid, "user", "specify either user, the owner of the device, or tags")
	}
	made, err := commit(ctx, s.core, a, func(w *policy.World, now mesh.Time) (*mesh.Reservation, []mesh.Event, error) {
		if w.Reservations.Len() >= maxReservations {
			return nil, nil, refuse(Conflict, "", "there are already %d reservations, the maximum; delete some with: fairlead reservations delete", maxReservations)
		}
		made := &mesh.Reservation{
			ID: w.Counters.Reservation + 1, Name: in.Name, Hostname: in.Hostname, Tags: tags, IPv4: in.IPv4, IPv6: in.IPv6, CreatedAt: now,
		}
		if in.User != "" {
			owner, err := FindUser(w.Snapshot, in.User)
			if err != nil {
				return nil, nil, err
			}
			made.User = owner.ID
		}
		if err := s.free(w, made); err != nil {
			return nil, nil, err
		}
		return made, []mesh.Event{mesh.ReservationPut{Reservation: made}}, nil
	})
	if err != nil {
		return nil, err
	}
	s.logFor(a).Info("name reserved", "reservation", made.ID, "name", made.Name, "addresses", made.Addrs())
	return made, nil
}

// free refuses a reservation of a name or address that is taken.
func (s *Reservations) free(w *policy.World, r *mesh.Reservation) error {
	if holder, taken := w.Nodes.ByName(r.Name); taken {
		return refuse(Conflict, "name", "node %s already has the name %q; rename that node first, or choose another name", holder.ID, r.Name)
	}
	if other, taken := w.Reservations.ByName(r.Name); taken {
		return refuse(Conflict, "name", "the name %q is already reserved (reservation %s); delete that reservation first", r.Name, other.ID)
	}
	for _, want := range []struct {
		path   string
		prefix netip.Prefix
		addr   netip.Addr
	}{{"ipv4", s.prefixV4, r.IPv4}, {"ipv6", s.prefixV6, r.IPv6}} {
		if !want.addr.IsValid() {
			continue
		}
		if err := addressFree(w, want.path, want.prefix, want.addr); err != nil {
			return err
		}
	}
	return nil
}

// FindReservation finds a reservation by id or name.
func FindReservation(s *mesh.Snapshot, ref string) (*mesh.Reservation, error) {
	if id, err := strconv.ParseInt(ref, 10, 64); err == nil {
		if r, ok := s.Reservations.Get(mesh.ReservationID(id)); ok {
			return r, nil
		}
	} else if r, ok := s.Reservations.ByName(strings.ToLower(ref)); ok {
		return r, nil
	}
	return nil, refuse(NotFound, "reservation", "unknown reservation %q; list reservations with: fairlead reservations list", ref)
}

// Delete ends a reservation without a device.
func (s *Reservations) Delete(ctx context.Context, a mesh.Actor, ref string) error {
	r, err := commit(ctx, s.core, a, func(w *policy.World, _ mesh.Time) (*mesh.Reservation, []mesh.Event, error) {
		r, err := FindReservation(w.Snapshot, ref)
		if err != nil {
			return nil, nil, err
		}
		return r, []mesh.Event{mesh.ReservationGone{ID: r.ID}}, nil
	})
	if err != nil {
		return err
	}
	s.logFor(a).Info("reservation deleted", "reservation", r.ID, "name", r.Name)
	return nil
}

// errReserved refuses a name that is kept for another device.
func errReserved(path, name string) error {
	return refuse(Conflict, path, "the name %q is reserved for a device that has not joined yet; delete the reservation first with: fairlead reservations delete %s", name, name)
}
