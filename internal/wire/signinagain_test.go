package wire_test

import (
	"net/http"
	"strconv"
	"testing"
	"time"

	"tailscale.com/types/key"

	"github.com/fairlead-mesh/fairlead/internal/control"
	"github.com/fairlead-mesh/fairlead/internal/identity"
	"github.com/fairlead-mesh/fairlead/internal/mesh"
	"github.com/fairlead-mesh/fairlead/internal/test/oidctest"
)

// The tests of this file are named after mistakes that other control servers made when people signed in again.
// docs/spec-coverage.md lists them, and those of the other files.

// signedIn returns a client whose person has signed in, and its node.
func (s *service) signedIn() (*client, mesh.Node) {
	s.t.Helper()
	c := s.client()
	link := c.asks()
	s.browser().signIn(link)
	c.joins(object{"Followup": link})
	return c, *s.only()
}

// signsInAgain signs the person in with a new node key, as clients do, and returns the only node.
func (c *client) signsInAgain(changes object) mesh.Node {
	c.s.t.Helper()
	c.node = key.NewNode()
	link := c.register(changes).AuthURL
	if link == "" {
		c.s.t.Fatal("the client gets no login link")
	}
	c.s.browser().signIn(link)
	c.joins(with(object{"Followup": link}, changes))
	return *c.s.only()
}

func sameNode(t *testing.T, was, is mesh.Node) {
	t.Helper()
	if is.ID != was.ID || is.Name != was.Name || is.IPv4 != was.IPv4 || is.IPv6 != was.IPv6 || is.Owner != was.Owner {
		t.Errorf("was %+v\nis  %+v", was, is)
	}
}

// hasMap checks whether a node key works.
func (c *client) hasMap(k key.NodePrivate, want int) {
	c.s.t.Helper()
	status, text, _ := c.post("/machine/map", object{"Version": 142, "NodeKey": k.Public(), "OmitPeers": true})
	if status != want {
		c.s.t.Errorf("the map of %s: %d %.100s", k.Public().ShortString(), status, text)
	}
}

func TestNodeIsNotDuplicatedWhenItSignsInAfterItExpired(t *testing.T) {
	s := openWith(t, oidctest.Start(t, oidctest.Behaviour{Claims: ann()}))
	c, was := s.signedIn()
	old := c.node.Public()
	if _, err := s.Nodes.Expire(t.Context(), admin, was.ID.String(), control.Expiration{}, ""); err != nil {
		t.Fatal(err)
	}
	if n := s.only(); !n.KeyExpired && !n.Expired(s.ledger.Now()) {
		t.Fatalf("not expired: %+v", n)
	}
	is := c.signsInAgain(object{"OldNodeKey": old})
	sameNode(t, was, is)
	if is.KeyExpired || is.Expired(s.ledger.Now()) {
		t.Errorf("still expired: %+v", is)
	}
}

func TestNewNodeKeyWorksAndTheOldOneStopsAfterSigningInAgain(t *testing.T) {
	s := openWith(t, oidctest.Start(t, oidctest.Behaviour{Claims: ann()}))
	c, was := s.signedIn()
	first := c.node
	c.hasMap(first, http.StatusOK)
	sameNode(t, was, c.signsInAgain(object{"OldNodeKey": first.Public()}))
	c.hasMap(c.node, http.StatusOK)
	c.hasMap(first, http.StatusNotFound)
	c.joins(nil) // as after a restart of the client
}

// After a logout, clients have a new node key and do not send the old one.
func TestDeviceSignsInAfterItLoggedOut(t *testing.T) {
	s := openWith(t, oidctest.Start(t, oidctest.Behaviour{Claims: ann()}))
	c, was := s.signedIn()
	for range 2 {
		if out := c.register(object{"Expiry": time.Unix(123, 0)}); out.Error != "" || !out.NodeKeyExpired {
			t.Fatalf("logout: %+v", out)
		}
		sameNode(t, was, c.signsInAgain(nil))
		c.hasMap(c.node, http.StatusOK)
	}
}

// After a logout, the device belongs to whoever signs in, and the node of the first person stays.
func TestAnotherPersonSignsInAfterALogout(t *testing.T) {
	i := oidctest.Start(t, oidctest.Behaviour{Claims: ann()})
	s := openWith(t, i)
	c, was := s.signedIn()
	if out := c.register(object{"Expiry": time.Unix(123, 0)}); out.Error != "" {
		t.Fatalf("logout: %+v", out)
	}
	i.Behave(func(b *oidctest.Behaviour) { b.Claims = bob() })
	c.node = key.NewNode()
	link := c.asks()
	s.browser().signIn(link)
	if out := c.joins(object{"Followup": link}); out.Login.LoginName != "bob" {
		t.Errorf("the device belongs to %s", out.Login.LoginName)
	}
	w := s.ledger.World()
	n, ok := w.Nodes.Get(was.ID)
	if !ok || w.Nodes.Len() != 2 {
		t.Fatalf("%d nodes, with the first: %t", w.Nodes.Len(), ok)
	}
	sameNode(t, was, *n)
}

// A person who signs in all the time must not keep others from it.
func TestOnePersonCannotUseUpTheSignInsOfOthers(t *testing.T) {
	i := oidctest.Start(t, oidctest.Behaviour{Claims: ann()})
	s := openWith(t, i)
	s.signedIn()
	var evs []mesh.Event
	for r := range s.ledger.World().Receipts.All() {
		for n := range mesh.MaxSignInReceipts {
			other := *r
			other.ID += mesh.ReceiptID(n + 1)
			other.Key = mesh.SignInOnce("", strconv.Itoa(n), "").Key
			evs = append(evs, mesh.ReceiptPut{Receipt: &other})
		}
	}
	s.commit(evs...)
	b, c := s.browser(), s.client()
	link := c.asks()
	b.press(b.follow(path(link), "")).shows(t, 503, "Too many people are signing in", "Try again in a moment", path(link))
	i.Behave(func(b *oidctest.Behaviour) { b.Claims = bob() })
	s.browser().signIn(link)
	if out := c.joins(object{"Followup": link}); out.Login.LoginName != "bob" {
		t.Errorf("%+v", out)
	}
}

// The person is refused, not merged and not an internal error, until an administrator decides.
func TestSameAddressAtANewIssuerWaitsForAnAdministrator(t *testing.T) {
	old, next := oidctest.Start(t, oidctest.Behaviour{Claims: ann()}), oidctest.Start(t, oidctest.Behaviour{Claims: ann()})
	s, _ := open(t, options{wire: withProviders(providerOf(t, old, nil), providerOf(t, next, nil))})
	first := s.client()
	link := first.asks()
	b := s.browser()
	b.press(b.follow("/oidc/start/0/"+identity.LoginToken(link), ""))
	first.joins(object{"Followup": link})
	was := *s.only()
	rev := s.ledger.World().Rev
	c := s.client()
	link = c.asks()
	moved := "/oidc/start/1/" + identity.LoginToken(link)
	s.browser().follow(moved, "").shows(t, 409, "Another user already has the email address ann@example.com", "fairlead users link USER '"+next.URL+"/ann-1'")
	s.stays(t, rev)
	if _, err := s.Users.Link(t.Context(), admin, "ann", next.URL+"/ann-1", true, ""); err != nil {
		t.Fatal(err)
	}
	b = s.browser()
	b.press(b.follow(moved, ""))
	c.joins(object{"Followup": link})
	w := s.ledger.World()
	if n, ok := w.Nodes.Get(was.ID); !ok || n.Owner != was.Owner || w.Users.Len() != 1 || w.Nodes.Len() != 2 {
		t.Errorf("%d users, %d nodes, the first is %+v", w.Users.Len(), w.Nodes.Len(), n)
	}
}
