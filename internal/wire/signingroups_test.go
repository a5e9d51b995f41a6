package wire_test

import (
	"fmt"
	"net/http"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/fairlead-mesh/fairlead/internal/oidc"
	"github.com/fairlead-mesh/fairlead/internal/test/oidctest"
)

func (s *service) groupsOf(name string) []string {
	u, ok := s.ledger.World().Users.ByName(name)
	if !ok {
		return []string{"no such user"}
	}
	return u.Groups
}

func TestGroupsOfTheProviderAreStoredAtSignIn(t *testing.T) {
	claims := ann()
	claims["groups"] = []string{"/staff", "0b1f", "all@example.com"}
	i := oidctest.Start(t, oidctest.Behaviour{Claims: claims})
	s := openWith(t, i)
	s.browser().signIn(s.client().asks())
	if got := s.groupsOf("ann"); !cmp.Equal(got, []string{"0b1f", "staff"}) {
		t.Errorf("%q", got)
	}
	if lines := s.log.lines(t, "groups of a person ignored: the policy cannot name them, or there are too many. Set oidc.groups_map to rename or select groups"); len(lines) != 1 || lines[0]["first"] != "all@example.com" {
		t.Errorf("logged %v", lines)
	}
	mapped, _ := open(t, options{wire: withProviders(providerOf(t, i, func(c *oidc.Config) { c.GroupsMap = map[string]string{"0b1f": "dev", "all@example.com": "all"} }))})
	mapped.browser().signIn(mapped.client().asks())
	if got := mapped.groupsOf("ann"); !cmp.Equal(got, []string{"all", "dev"}) {
		t.Errorf("mapped: %q", got)
	}
}

// A cookie holds at most about 1,700 bytes.
func TestMoreGroupsThanACookieCanHold(t *testing.T) {
	claims, want := ann(), []string{}
	for i := range 200 {
		want = append(want, fmt.Sprintf("a-group-with-a-name-%03d", i))
	}
	claims["groups"] = want
	i := oidctest.Start(t, oidctest.Behaviour{Claims: claims})
	s := openWith(t, i)
	c := s.client()
	link := c.asks()
	confirm := s.browser()
	page := confirm.follow(path(link), "")
	page.shows(t, http.StatusOK, "Add this device?", "<dd>ann</dd>")
	if got := s.groupsOf("ann"); !cmp.Equal(got, want) {
		t.Errorf("before the confirmation: %d groups", len(got))
	}
	confirm.press(page)
	c.joins(object{"Followup": link})
	if got := s.groupsOf("ann"); !cmp.Equal(got, want) || s.ledger.World().Users.Len() != 1 {
		t.Errorf("after the confirmation: %d groups", len(got))
	}
	// A user of this name that is not linked to the account stays as it is.
	claims["sub"] = "ann-2"
	rev := s.ledger.World().Rev
	s.browser().follow(path(s.client().asks()), "").shows(t, http.StatusConflict, "already has the")
	s.stays(t, rev)
}
