package control_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/netip"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/fairlead-mesh/fairlead/internal/control"
	"github.com/fairlead-mesh/fairlead/internal/history"
	"github.com/fairlead-mesh/fairlead/internal/identity"
	"github.com/fairlead-mesh/fairlead/internal/ledger"
	"github.com/fairlead-mesh/fairlead/internal/mesh"
	"github.com/fairlead-mesh/fairlead/internal/mesh/meshgen"
	"github.com/fairlead-mesh/fairlead/internal/policy"
	"github.com/fairlead-mesh/fairlead/internal/sqlstore"
)

var admin = mesh.Actor{Kind: mesh.ActorServer}

// sealer creates and opens the login links of all tests.
var sealer = identity.NewLoginSealer(identity.NewServerSecrets(identity.NewServerSecret(1)))

// service is a Service with its ledger and history.
type service struct {
	*control.Service
	ledger  *ledger.Ledger
	history history.Reader
}

var reserved = mesh.ReservedFor(netip.MustParsePrefix("100.64.0.0/10"), netip.MustParsePrefix("fd7a:115c:a1e0::/48"))

// open runs the use cases over a ledger on SQLite until the test ends.
func open(t *testing.T, configure ...func(*ledger.Config)) service {
	t.Helper()
	st, err := sqlstore.OpenSQLite(t.Context(), filepath.Join(t.TempDir(), "db"), prometheus.NewRegistry())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { st.Close() })
	log, reg := slog.New(slog.DiscardHandler), prometheus.NewRegistry()
	config := ledger.Config{Store: st, Log: log, Registerer: reg, History: st, Reserved: reserved}
	for _, change := range configure {
		change(&config)
	}
	l, err := ledger.Open(t.Context(), config)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	var wg sync.WaitGroup
	wg.Go(func() {
		if err := l.Run(ctx); err != nil {
			t.Error(err)
		}
	})
	t.Cleanup(func() { cancel(); wg.Wait() })
	return service{control.New(control.Config{
		Ledger: l, History: config.History, Log: log, Registerer: reg,
		PrefixV4: netip.MustParsePrefix("100.64.0.0/10"), PrefixV6: netip.MustParsePrefix("fd7a:115c:a1e0::/48"),
		Logins: sealer, ServerURL: "https://mesh.example.com",
	}), l, config.History}
}

// reason returns why a use case refused, or -1 if it did not.
func reason(err error) control.Reason {
	var refusal *control.Refusal
	if errors.As(err, &refusal) {
		return refusal.Reason
	}
	return -1
}

func TestUserNames(t *testing.T) {
	for _, name := range []string{
		"a", "Z", "alice", "Alice", "alice.smith", "alice_smith", "alice-smith", "alice@example.com", "a9", "a..", "a--", "A@", strings.Repeat("a", 128),
	} {
		if err := control.CheckUserName(name); err != nil {
			t.Errorf("%q is refused: %v", name, err)
		}
	}
	for name, try := range map[string]string{
		"":                           "",
		"alice smith":                "alice-smith",
		"Alice  Smith ":              "alice--smith",
		" alice":                     "alice",
		"alice\tsmith":               "alice-smith",
		"1alice":                     "alice",
		"-alice":                     "alice",
		".alice":                     "alice",
		"_alice":                     "alice",
		"@alice":                     "alice",
		"alice!":                     "alice",
		"alice/bob":                  "alicebob",
		"alice\n":                    "alice",
		"alice\x00":                  "alice",
		"аlice":                      "", // the first letter is Cyrillic
		"jöhn":                       "john",
		"Łukasz Weiß":                "lukasz-weiss",
		"日本":                         "",
		"123":                        "",
		"\xff":                       "",
		strings.Repeat("a", 129):     "",
		"tagged-devices":             "",
		"TAGGED-devices":             "",
		"alice,bob;drop table users": "alicebobdrop-table-users",
	} {
		err := control.CheckUserName(name)
		if reason(err) != control.Invalid {
			t.Errorf("%q is taken: %v", name, err)
			continue
		}
		_, tail, _ := strings.Cut(err.Error(), "; try ")
		if want := fmt.Sprintf("%q", try); try != "" && tail != want || try == "" && tail != "" {
			t.Errorf("%q: try %s, want %s", name, tail, want)
		}
		if try != "" && control.CheckUserName(try) != nil {
			t.Errorf("the correction %q would be refused too", try)
		}
	}
}

func FuzzUserNameCorrection(f *testing.F) {
	for _, seed := range []string{"", "alice smith", "1@", "é a", "tagged-devices ", "\xff"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, name string) {
		err := control.CheckUserName(name)
		if err == nil {
			return
		}
		if _, try, ok := strings.Cut(err.Error(), `; try "`); ok {
			if err := control.CheckUserName(strings.TrimSuffix(try, `"`)); err != nil {
				t.Fatalf("%q: the correction is refused: %v", name, err)
			}
		}
	})
}

func TestUserNamesAreUniqueWithoutRegardToCase(t *testing.T) {
	s := open(t)
	if _, err := s.Users.Create(t.Context(), admin, control.NewUser{Name: "Alice"}); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"alice", "ALICE", "Alice"} {
		if _, err := s.Users.Create(t.Context(), admin, control.NewUser{Name: name}); reason(err) != control.Conflict {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := s.Users.Rename(t.Context(), admin, "aLiCe", "alice", ""); err != nil {
		t.Errorf("a user cannot change the case of the name: %v", err)
	}
}

func TestPrefixOfFourCharactersExpiresAllThatMatch(t *testing.T) {
	s := open(t)
	var evs []mesh.Event
	for i, prefix := range []string{"abcd00000000", "abcd11111111", "abce00000000", "123400000000", "ABCD00000000"} {
		evs = append(evs, mesh.APIKeyPut{Key: &mesh.APIKey{ID: mesh.KeyID(i + 1), Prefix: prefix, Expiry: mesh.TimeOf(time.Now().Add(time.Hour)), CreatedAt: 1}})
	}
	if _, err := s.ledger.Commit(t.Context(), admin, func(*policy.World, mesh.Time) ([]mesh.Event, error) { return evs, nil }); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		ref     string
		several bool
		want    []string
		reason  control.Reason
	}{
		{"abc", true, nil, control.Invalid},
		{"", true, nil, control.Invalid},
		{"flk_abc", true, nil, control.Invalid},
		{"abcd", false, nil, control.NotFound}, // only if several keys are allowed
		{"abcf", true, nil, control.NotFound},
		{"9", false, nil, control.NotFound},
		{"1234", true, []string{"123400000000"}, -1}, // a prefix, not key number 1234
		{"4", false, []string{"123400000000"}, -1},   // key number 4
		{"abcd", true, []string{"abcd00000000", "abcd11111111"}, -1},
		{"abcd0", true, []string{"abcd00000000"}, -1},
		{"flk_ABCD_***", true, []string{"ABCD00000000"}, -1},
	} {
		keys, err := s.APIKeys.Expire(t.Context(), admin, c.ref, c.several, time.Time{})
		var got []string
		for _, k := range keys {
			got = append(got, k.Prefix)
		}
		if diff := cmp.Diff(c.want, got); diff != "" || reason(err) != c.reason {
			t.Errorf("%q: %v, keys (-want +got):\n%s", c.ref, err, diff)
		}
	}
	now := mesh.TimeOf(time.Now())
	for k := range s.ledger.World().APIKeys.All() {
		if expired := k.Prefix != "abce00000000"; k.Expiry.Reached(now) != expired {
			t.Errorf("%s expired: %v, want %v", k.Prefix, !expired, expired)
		}
	}
}

func TestKeyCanEndLaterButNeverLaterThanItWould(t *testing.T) {
	s := open(t)
	end := time.Now().Add(time.Hour).Truncate(time.Millisecond)
	k, _, err := s.APIKeys.Create(t.Context(), admin, control.NewAPIKey{Access: mesh.Access{Role: mesh.RoleRead}, Comment: "backup", Expiration: end})
	if err != nil || k.Comment != "backup" {
		t.Fatal(k, err)
	}
	if _, err := s.APIKeys.Expire(t.Context(), admin, k.ID.String(), false, time.Now().Add(-time.Minute)); reason(err) != control.Invalid {
		t.Errorf("a time that has passed: %v", err)
	}
	sooner := end.Add(-time.Minute)
	for _, c := range []struct{ at, want time.Time }{{end.Add(time.Hour), end}, {sooner, sooner}, {end, sooner}} {
		if _, err := s.APIKeys.Expire(t.Context(), admin, k.ID.String(), false, c.at); err != nil {
			t.Fatal(err)
		}
		if now, _ := s.ledger.World().APIKeys.Get(k.ID); now.Expiry != mesh.TimeOf(c.want) || now.Comment != "backup" {
			t.Errorf("ending it at %s: it ends at %s, want %s", c.at, now.Expiry.Time(), c.want)
		}
	}
	if _, _, err := s.APIKeys.Create(t.Context(), admin, control.NewAPIKey{Comment: strings.Repeat("x", 121)}); reason(err) != control.Invalid {
		t.Errorf("a long comment: %v", err)
	}
}

func TestSpentKeyCannotRegisterSecondMachine(t *testing.T) {
	s := open(t)
	_, once, err := s.PreAuthKeys.Create(t.Context(), admin, control.NewPreAuthKey{Tags: []string{"tag:a"}})
	if err != nil {
		t.Fatal(err)
	}
	const machines = 64
	errs := make([]error, machines)
	var wg sync.WaitGroup
	for i := range machines {
		wg.Go(func() { _, errs[i] = register(t, s, uint64(i), once) })
	}
	wg.Wait()
	admitted := 0
	for _, err := range errs {
		switch reason(err) {
		case -1:
			admitted++
			if err != nil {
				t.Error(err)
			}
		case control.BadKey:
		default:
			t.Error(err)
		}
	}
	if admitted != 1 || s.ledger.World().Nodes.Len() != 1 {
		t.Errorf("%d machines joined, but there are %d nodes", admitted, s.ledger.World().Nodes.Len())
	}
}

// register registers a machine without proof of its machine key.
func (s service) register(ctx context.Context, a mesh.Actor, j control.Joining) (*mesh.Node, error) {
	joined, err := s.Joins.Join(ctx, a, j)
	return joined.Node, err
}

func register(t *testing.T, s service, n uint64, key string) (*mesh.Node, error) {
	return s.register(t.Context(), mesh.Actor{Kind: mesh.ActorNode}, control.Joining{
		PreAuthKey: key, MachineKey: meshgen.MachineKey(n), NodeKey: meshgen.NodeKey(n), Host: control.Host{Hostname: "localhost"},
	})
}

func TestRegistrationWithTheNodeKeyOfAnotherMachineIsLogged(t *testing.T) {
	s := open(t)
	_, key, err := s.PreAuthKeys.Create(t.Context(), admin, control.NewPreAuthKey{Tags: []string{"tag:a"}, Reusable: true})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := register(t, s, 1, key); err != nil {
		t.Fatal(err)
	}
	var log strings.Builder
	c := control.New(control.Config{Ledger: s.ledger, History: s.history, Log: slog.New(slog.NewTextHandler(&log, nil)), Registerer: prometheus.NewRegistry()})
	thief := control.Joining{Proven: true, MachineKey: meshgen.MachineKey(2), NodeKey: meshgen.NodeKey(1)}
	for range 101 { // at most a hundred lines a minute
		if _, err := c.Joins.Join(t.Context(), mesh.Actor{Addr: "192.0.2.7"}, thief); reason(err) != control.Conflict {
			t.Fatal(err)
		}
	}
	const want = `level=WARN msg=forbidden addr=192.0.2.7 machine=`
	if n := strings.Count(log.String(), want); n != 100 {
		t.Errorf("logged %d times:\n%.1000s", n, log.String())
	}
}

func TestNoAddressAndNoNameIsGivenTwice(t *testing.T) {
	s := open(t)
	_, key, err := s.PreAuthKeys.Create(t.Context(), admin, control.NewPreAuthKey{Tags: []string{"tag:a"}, Reusable: true})
	if err != nil {
		t.Fatal(err)
	}
	const machines = 200
	var wg sync.WaitGroup
	for i := range machines {
		wg.Go(func() {
			if _, err := register(t, s, uint64(i), key); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	addrs, names := map[netip.Addr]bool{}, map[string]bool{}
	for n := range s.ledger.World().Nodes.All() {
		addrs[n.IPv4], addrs[n.IPv6], names[n.Name] = true, true, true
	}
	if len(addrs) != 2*machines || len(names) != machines {
		t.Errorf("%d addresses and %d names for %d nodes", len(addrs), len(names), machines)
	}
}

func TestHostDescriptionKeepsWhatItMay(t *testing.T) {
	s := open(t)
	_, key, err := s.PreAuthKeys.Create(t.Context(), admin, control.NewPreAuthKey{Tags: []string{"tag:a"}, Reusable: true})
	if err != nil {
		t.Fatal(err)
	}
	long := strings.Repeat("é", 127) // 254 bytes
	for n, hostname := range []string{"", "a", "Alice's Läptop", "日本語", "👩‍👩‍👧", long} {
		node, err := s.register(t.Context(), admin, control.Joining{
			PreAuthKey: key, MachineKey: meshgen.MachineKey(uint64(n)), NodeKey: meshgen.NodeKey(uint64(n)), Host: control.Host{Hostname: hostname, OS: hostname[:0]},
		})
		if err != nil || node.Hostname != hostname {
			t.Errorf("%q: %v %v", hostname, node, err)
		}
	}
	for n, hostname := range []string{"a\x00", "a\r", "a\x7f", "a\u0080", "a\xff", "a\ufffd", "a\u202e"} {
		node, err := s.register(t.Context(), admin, control.Joining{
			PreAuthKey: key, MachineKey: meshgen.MachineKey(uint64(100 + n)), NodeKey: meshgen.NodeKey(uint64(100 + n)), Host: control.Host{Hostname: hostname},
		})
		if err != nil || node.Hostname != "a-" {
			t.Errorf("%q: %v %v", hostname, node, err)
		}
	}
	_, err = s.register(t.Context(), admin, control.Joining{
		PreAuthKey: key, MachineKey: meshgen.MachineKey(99), NodeKey: meshgen.NodeKey(99), Host: control.Host{Hostname: long + "éé"},
	})
	if reason(err) != control.Invalid {
		t.Errorf("256 bytes: %v", err)
	}
}

// Run this under the race detector: a caller that has returned must share nothing with a
// decision that is still running.
func TestCallersMayLeaveAtAnyMoment(t *testing.T) {
	s := open(t)
	if _, err := s.Users.Create(t.Context(), admin, control.NewUser{Name: "alice"}); err != nil {
		t.Fatal(err)
	}
	_, key, err := s.PreAuthKeys.Create(t.Context(), admin, control.NewPreAuthKey{User: "alice", Reusable: true})
	if err != nil {
		t.Fatal(err)
	}
	var wg sync.WaitGroup
	for i := range 200 {
		wg.Go(func() {
			ctx, cancel := context.WithTimeout(t.Context(), time.Duration(i)*10*time.Microsecond)
			defer cancel()
			_, _ = s.register(ctx, admin, control.Joining{PreAuthKey: key, MachineKey: meshgen.MachineKey(uint64(i)), NodeKey: meshgen.NodeKey(uint64(i)), Host: control.Host{Hostname: "host"}})
			_, _ = s.Users.Create(ctx, admin, control.NewUser{Name: fmt.Sprint("user", i)})
			_, _ = s.Users.Delete(ctx, admin, fmt.Sprint("user", i-1), "", false)
		})
	}
	wg.Wait()
}
