package api

import (
	"net/http"

	"github.com/fairlead-mesh/fairlead/internal/api/openapi"
	"github.com/fairlead-mesh/fairlead/internal/control"
	"github.com/fairlead-mesh/fairlead/internal/mesh"
)

// reservations handles the operations on names and addresses of devices that have not joined yet.
type reservations struct {
	*core
	control *control.Reservations
}

// CreateReservation implements POST /api/v1/reservation.
func (s *reservations) CreateReservation(w http.ResponseWriter, r *http.Request) {
	var in openapi.ReservationCreation
	if err := decode(w, r, &in); err != nil {
		s.fail(w, r, err)
		return
	}
	wanted := control.NewReservation{Name: in.Name, Hostname: or(in.Hostname), User: or(in.User), Tags: in.Tags}
	var err error
	if wanted.IPv4, err = address("ipv4", or(in.Ipv4)); err == nil {
		wanted.IPv6, err = address("ipv6", or(in.Ipv6))
	}
	if err != nil {
		s.fail(w, r, err)
		return
	}
	made, err := s.control.Create(r.Context(), actor(r), wanted)
	if err != nil {
		s.fail(w, r, err)
		return
	}
	snap := s.ledger.World().Snapshot
	reply(w, snap, openapi.ReservationResult{Reservation: reservationShape(snap, made)})
}

func (*reservations) replayReservation(c replayed) (any, error) {
	r, err := control.FindReservation(c.snap, c.receipt.Object)
	if err != nil {
		return nil, err
	}
	return openapi.ReservationResult{Reservation: reservationShape(c.snap, r)}, nil
}

// ListReservations implements GET /api/v1/reservation.
func (s *reservations) ListReservations(w http.ResponseWriter, r *http.Request, p openapi.ListReservationsParams) {
	part, err := pageOf(p.Limit, p.Cursor)
	if err != nil {
		s.fail(w, r, err)
		return
	}
	snap := s.ledger.World().Snapshot
	lister[*mesh.Reservation, mesh.ReservationID]{
		name: "reservations", id: func(v *mesh.Reservation) mesh.ReservationID { return v.ID },
		encode: func(v *mesh.Reservation) []byte { return encoded(reservationShape(snap, v)) },
	}.reply(w, snap, part, snap.Reservations.All())
}

// DeleteReservation implements DELETE /api/v1/reservation/{id}.
func (s *reservations) DeleteReservation(w http.ResponseWriter, r *http.Request, id string) {
	s.done(w, r, s.control.Delete(r.Context(), actor(r), id))
}

func reservationShape(s *mesh.Snapshot, r *mesh.Reservation) openapi.Reservation {
	out := openapi.Reservation{ID: r.ID.String(), Name: r.Name, Hostname: r.Hostname, Tags: list(r.Tags), CreatedAt: r.CreatedAt.Time()}
	if u, ok := s.Users.Get(r.User); ok {
		out.User = u.Name
	}
	if r.IPv4.IsValid() {
		out.Ipv4 = r.IPv4.String()
	}
	if r.IPv6.IsValid() {
		out.Ipv6 = r.IPv6.String()
	}
	return out
}

func describeReservation(s *mesh.Snapshot, id mesh.ReservationID) (kind, name string, shape []byte) {
	r, ok := s.Reservations.Get(id)
	return "reservation", id.String(), shapeOf(ok, func() any { return reservationShape(s, r) })
}
