// Package control holds the use cases: what may be done to the network, by
// whom, and what follows. Each checks the shape of what was asked, commits one
// decision, and says in the log what an operator wants to know.
//
// It knows neither HTTP nor storage: it imports ledger, identity, policy and
// mesh. It starts no goroutine.
package control

import (
	"context"
	"fmt"
	"log/slog"
	"net/netip"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/fairlead-mesh/fairlead/internal/history"
	"github.com/fairlead-mesh/fairlead/internal/identity"
	"github.com/fairlead-mesh/fairlead/internal/ledger"
	"github.com/fairlead-mesh/fairlead/internal/mesh"
)

// Config of the use cases. Ledger, History, Log and Registerer are required.
type Config struct {
	Ledger     *ledger.Ledger
	History    history.Reader
	Log        *slog.Logger
	Registerer prometheus.Registerer
	// PrefixV4 and PrefixV6 are where addresses come from.
	PrefixV4, PrefixV6 netip.Prefix
	// RandomAddresses gives addresses in no order.
	RandomAddresses bool
	// NodeExpiry is how long a new node may stay without authenticating
	// again; zero means for ever. Tagged nodes stay for ever.
	NodeExpiry time.Duration
	// Quotas bound the number of nodes.
	Quotas Quotas
	// Logins makes the links for devices that ask to join without a key, and
	// ServerURL is where they lead. Without Logins such devices are refused.
	Logins    *identity.LoginSealer
	ServerURL string
	// Webhooks makes the secrets of webhooks, and Deliver sends one event to the
	// receiver of one, once.
	Webhooks *identity.WebhookSecrets
	Deliver  func(context.Context, *mesh.Webhook, history.AuditRow) WebhookAnswer
	// LocalWebhooks lets receivers have an address that IsLocal.
	LocalWebhooks bool
	// PolicyFile is the file that is the policy; without it the policy is what
	// was saved last.
	PolicyFile string
}

// Service groups the use cases by what they are about. Each part depends only on
// the parts named in its own type.
type Service struct {
	Users        *Users
	Nodes        *Nodes
	PreAuthKeys  *PreAuthKeys
	APIKeys      *APIKeys
	Routes       *Routes
	DNS          *DNS
	Relays       *Relays
	Policies     *Policies
	PolicyFile   *PolicyFile
	PolicyWatch  *PolicyWatch
	Joins        *Joins
	Logins       *Logins
	SSH          *SSH
	Clients      *Clients
	Observations *Observations
	Webhooks     *Webhooks
	History      *History
}

// core is what all use cases share. It has no exported methods, so that embedding
// it adds nothing to what a type offers.
type core struct {
	ledger             *ledger.Ledger
	history            history.Reader
	log                *slog.Logger
	prefixV4, prefixV6 netip.Prefix
	refusals           *identity.RefusalLog
}

// New returns the use cases over a ledger that is open.
func New(c Config) *Service {
	shared := &core{
		ledger: c.Ledger, history: c.History, log: c.Log, prefixV4: c.PrefixV4, prefixV6: c.PrefixV6, refusals: identity.NewRefusalLog(c.Log),
	}
	audit := &History{shared}
	observations := &Observations{core: shared}
	ssh := &SSH{core: shared}
	logins := &Logins{core: shared, ssh: ssh, sealer: c.Logins, serverURL: strings.TrimSuffix(c.ServerURL, "/")}
	file := &PolicyFile{core: shared, path: c.PolicyFile}
	nodeGauges(c.Registerer, c.Ledger)
	return &Service{
		Users:        &Users{shared},
		Nodes:        &Nodes{core: shared, quotas: c.Quotas},
		PreAuthKeys:  &PreAuthKeys{shared},
		APIKeys:      &APIKeys{shared},
		Routes:       &Routes{shared},
		DNS:          &DNS{core: shared},
		Relays:       &Relays{core: shared},
		Policies:     &Policies{core: shared, file: file},
		PolicyFile:   file,
		PolicyWatch:  newPolicyWatch(shared, file, c.Registerer),
		Joins:        newJoins(shared, logins, c),
		Logins:       logins,
		SSH:          ssh,
		Clients:      newClients(shared, observations, c.Registerer),
		Observations: observations,
		Webhooks: &Webhooks{
			core: shared, audit: audit, secrets: c.Webhooks, deliver: c.Deliver, allowLocal: c.LocalWebhooks,
		},
		History: audit,
	}
}

// nodeGauges describe the whole network, the same on every replica.
func nodeGauges(reg prometheus.Registerer, l *ledger.Ledger) {
	gauge := func(name, help string, value func(*mesh.Snapshot) int) {
		reg.MustRegister(prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: name, Help: help},
			func() float64 { return float64(value(l.World().Snapshot)) }))
	}
	gauge("mesh_nodes_total", "All stored nodes.", func(s *mesh.Snapshot) int { return s.Nodes.Len() })
	gauge("mesh_nodes_registered", "Nodes that are not expired.", func(s *mesh.Snapshot) int {
		now, n := l.Now(), 0
		for node := range s.Nodes.All() {
			if !node.Expired(now) {
				n++
			}
		}
		return n
	})
	gauge("mesh_nodes_online", "Nodes with a live stream on any replica.", func(s *mesh.Snapshot) int { return s.Nodes.OnlineCount() })
	gauge("mesh_nodes_offline", "Nodes without a live stream.", func(s *mesh.Snapshot) int { return s.Nodes.Len() - s.Nodes.OnlineCount() })
}

// logFor names who asked in every line about it.
func (s *core) logFor(a mesh.Actor) *slog.Logger {
	return s.log.With("actor", a.String(), "req", a.RequestID)
}

// Reason says why a use case refused.
type Reason int

// The reasons. A transport maps each to its own answer.
const (
	Invalid   Reason = iota // the request cannot be right, whatever the state
	NotFound                // it names something that is not there
	Conflict                // it clashes with what is there
	Stale                   // it was made from something that has changed since
	BadKey                  // the pre-auth key does not let this node in
	Denied                  // the policy does not allow it
	Forbidden               // the caller's key does not open it
)

// Refusal is an answer for the caller, not a fault: its text says what to do.
type Refusal struct {
	Reason Reason
	Path   string // the member of the request that is wrong, if one is; when stale, what kind of thing has changed
	Object string // when stale, the id of what has changed, if there are several of the kind
	Text   string
}

func (r *Refusal) Error() string { return r.Text }

func refuse(reason Reason, path, format string, args ...any) error {
	return &Refusal{Reason: reason, Path: path, Text: fmt.Sprintf(format, args...)}
}

// checkText bounds what may be stored: visible, valid and short. Both databases
// keep such text as it is, and terminals and documents show it as it is.
func checkText(path, text string, limit int) error {
	switch {
	case len(text) > limit:
		return refuse(Invalid, path, "%s is longer than %d bytes", path, limit)
	case !utf8.ValidString(text), strings.ContainsRune(text, utf8.RuneError): // decoders put it where there was no character
		return refuse(Invalid, path, "%s is not valid UTF-8", path)
	}
	if i := strings.IndexFunc(text, unseen); i >= 0 {
		r, _ := utf8.DecodeRuneInString(text[i:])
		return refuse(Invalid, path, "%s holds %U, which cannot be shown", path, r)
	}
	return nil
}

// unseen is true for what has no place in a line of text: controls, marks that
// turn or break the line, and what is no character. The joiners stay, because
// scripts and emoji are written with them.
func unseen(r rune) bool {
	const zeroWidthNonJoiner, zeroWidthJoiner = 0x200c, 0x200d
	return !unicode.IsGraphic(r) && r != zeroWidthNonJoiner && r != zeroWidthJoiner
}

// cleanHostname puts a hyphen in place of each character that checkText would
// refuse: nobody can change what a strange device calls itself.
func cleanHostname(name string) string {
	return strings.Map(func(r rune) rune {
		if unseen(r) || r == utf8.RuneError {
			return '-'
		}
		return r
	}, name)
}
