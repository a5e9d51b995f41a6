package control_test

import (
	"testing"

	"github.com/fairlead-mesh/fairlead/internal/control"
	"github.com/fairlead-mesh/fairlead/internal/mesh"
	"github.com/fairlead-mesh/fairlead/internal/mesh/meshgen"
)

func TestReservedNamesAndAddressesAreRefusedToOthers(t *testing.T) {
	s := open(t)
	put(t, s, mesh.Node{Name: "web"}, mesh.Node{Name: "db"})
	made, err := s.Reservations.Create(t.Context(), admin, control.NewReservation{Name: "Laptop", User: "alice", IPv4: v4(100), IPv6: v6(100)})
	if err != nil {
		t.Fatal(err)
	}
	if made.Name != "laptop" || made.Hostname != "laptop" || made.User != 1 {
		t.Errorf("%+v", made)
	}
	for what, err := range map[string]error{
		"renaming a node":            second(s.Nodes.Rename(t.Context(), admin, "web", "laptop", "")),
		"the address of a node":      second(s.Nodes.SetAddresses(t.Context(), admin, "web", v4(100), v6(0).Prev(), "")),
		"the name again":             second(s.Reservations.Create(t.Context(), admin, control.NewReservation{Name: "laptop", User: "alice"})),
		"the address again":          second(s.Reservations.Create(t.Context(), admin, control.NewReservation{Name: "other", User: "alice", IPv4: v4(100)})),
		"the name of a node":         second(s.Reservations.Create(t.Context(), admin, control.NewReservation{Name: "db", User: "alice"})),
		"the address of that node":   second(s.Reservations.Create(t.Context(), admin, control.NewReservation{Name: "other", User: "alice", IPv4: v4(1)})),
		"an address of no node":      second(s.Reservations.Create(t.Context(), admin, control.NewReservation{Name: "other", User: "alice", IPv4: v6(7)})),
		"neither user nor tags":      second(s.Reservations.Create(t.Context(), admin, control.NewReservation{Name: "other"})),
		"user and tags":              second(s.Reservations.Create(t.Context(), admin, control.NewReservation{Name: "other", User: "alice", Tags: []string{"tag:a"}})),
		"an unknown user":            second(s.Reservations.Create(t.Context(), admin, control.NewReservation{Name: "other", User: "nobody"})),
		"a name that looks like one": second(s.Reservations.Create(t.Context(), admin, control.NewReservation{Name: "17", User: "alice"})),
		"deleting an unknown one":    s.Reservations.Delete(t.Context(), admin, "other"),
	} {
		if err == nil {
			t.Errorf("%s was accepted", what)
		}
	}
	if err := s.Reservations.Delete(t.Context(), admin, "laptop"); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Nodes.Rename(t.Context(), admin, "web", "laptop", ""); err != nil {
		t.Errorf("after the reservation is deleted: %v", err)
	}
}

func second[V any](_ V, err error) error { return err }

func TestReservationsEndWithTheirUser(t *testing.T) {
	s := open(t)
	put(t, s)
	commit(t, s, mesh.ReservationPut{Reservation: &mesh.Reservation{ID: 1, Name: "laptop", Hostname: "laptop", User: 1}},
		mesh.ReservationPut{Reservation: &mesh.Reservation{ID: 2, Name: "web", Hostname: "web", Tags: []string{"tag:web"}}})
	commit(t, s, mesh.UserGone{ID: 1})
	if r := s.ledger.World().Reservations; r.Len() != 1 {
		t.Errorf("%d reservations are left, not 1", r.Len())
	}
}

// Each device joins with the same key of alice, except as noted.
func TestADeviceGetsWhatIsReservedForIt(t *testing.T) {
	s := open(t)
	put(t, s)
	commit(t, s,
		mesh.ReservationPut{Reservation: &mesh.Reservation{ID: 1, Name: "laptop", Hostname: "laptop", User: 1, IPv4: v4(500), IPv6: v6(500)}},
		mesh.ReservationPut{Reservation: &mesh.Reservation{ID: 2, Name: "desk", Hostname: "DESKTOP-4F2K", User: 1, IPv4: v4(501)}},
		mesh.ReservationPut{Reservation: &mesh.Reservation{ID: 3, Name: "web", Hostname: "web", Tags: []string{"tag:web"}, IPv4: v4(502), IPv6: v6(502)}},
		mesh.ReservationPut{Reservation: &mesh.Reservation{ID: 4, Name: "phone", Hostname: "localhost", User: 1}},
		mesh.UserPut{User: &mesh.User{ID: 2, Name: "bob"}})
	keys := map[string]string{}
	for name, in := range map[string]control.NewPreAuthKey{
		"alice": {User: "alice", Reusable: true}, "bob": {User: "bob", Reusable: true}, "web": {Tags: []string{"tag:web"}, Reusable: true}, "both": {Tags: []string{"tag:db", "tag:web"}, Reusable: true},
	} {
		_, text, err := s.PreAuthKeys.Create(t.Context(), admin, in)
		if err != nil {
			t.Fatal(err)
		}
		keys[name] = text
	}
	for i, c := range []struct {
		key, hostname, name string
		v4                  int // zero: any other
		left                int
	}{
		{"bob", "laptop", "laptop-1", 0, 4}, // another user
		{"web", "laptop", "laptop-2", 0, 4}, // no user
		{"both", "web", "web-1", 0, 4},      // more tags
		{"alice", "web", "web-2", 0, 4},
		{"alice", "LapTop", "laptop", 500, 3}, // however it is spelt
		{"alice", "laptop", "laptop-3", 0, 3}, // only once
		{"alice", "Desktop 4f2k", "desk", 501, 2},
		{"web", "web", "web", 502, 1},
		{"alice", "localhost", "phone", 0, 0}, // a name without addresses
	} {
		machine := uint64(100 + i)
		done, err := s.Joins.Join(t.Context(), mesh.Actor{}, control.Joining{
			Proven: true, MachineKey: meshgen.MachineKey(machine), NodeKey: meshgen.NodeKey(machine), PreAuthKey: keys[c.key], Host: control.Host{Hostname: c.hostname},
		})
		if err != nil {
			t.Fatalf("%s with the key of %s: %v", c.hostname, c.key, err)
		}
		n, left := done.Node, s.ledger.World().Reservations.Len()
		if n.Name != c.name || left != c.left || !n.IPv6.IsValid() || (n.IPv4 == v4(c.v4)) != (c.v4 != 0) {
			t.Errorf("%s with the key of %s: %s %s %s, %d reservations left; expected %s, %d left", c.hostname, c.key, n.Name, n.IPv4, n.IPv6, left, c.name, c.left)
		}
	}
}
