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
	"sync"
	"sync/atomic"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/fairlead-mesh/fairlead/internal/identity"
	"github.com/fairlead-mesh/fairlead/internal/ledger"
	"github.com/fairlead-mesh/fairlead/internal/mesh"
)

// Config of the service. Ledger, Log and Registerer are required.
type Config struct {
	Ledger     *ledger.Ledger
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
	Deliver  func(context.Context, *mesh.Webhook, ledger.AuditRow) WebhookAnswer
	// LocalWebhooks lets receivers have an address that IsLocal.
	LocalWebhooks bool
	// PolicyFile is the file that is the policy; without it the policy is what
	// was saved last.
	PolicyFile string
}

// Service offers the use cases.
type Service struct {
	ledger             *ledger.Ledger
	log                *slog.Logger
	prefixV4, prefixV6 netip.Prefix
	randomAddresses    bool
	nodeExpiry         time.Duration
	quotas             Quotas
	logins             *identity.LoginSealer
	serverURL          string
	webhooks           *identity.WebhookSecrets
	deliver            func(context.Context, *mesh.Webhook, ledger.AuditRow) WebhookAnswer
	localWebhooks      bool
	sending            sync.Map // by mesh.WebhookID: somebody waits for the receiver's answer
	waiting            waitingRoom
	sessions           sessionRoom
	observed           observations
	late               lateReports
	joins              joinPace
	delayed            prometheus.Counter
	refusals           *identity.RefusalLog
	registrations      prometheus.Counter
	refused            prometheus.Counter
	policyHealth       policyHealth
	policyFile         *policyFile // nil when the policy is no file
	configuredDNS      atomic.Pointer[string]
	relayRefusal       atomic.Pointer[Refusal]
}

// New returns a service over a ledger that is open.
func New(c Config) *Service {
	s := &Service{
		ledger: c.Ledger, log: c.Log, prefixV4: c.PrefixV4, prefixV6: c.PrefixV6,
		randomAddresses: c.RandomAddresses, nodeExpiry: c.NodeExpiry, quotas: c.Quotas, logins: c.Logins, serverURL: strings.TrimSuffix(c.ServerURL, "/"),
		webhooks: c.Webhooks, deliver: c.Deliver, localWebhooks: c.LocalWebhooks,
		refusals: identity.NewRefusalLog(c.Log),
		registrations: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "mesh_node_registrations_total", Help: "Nodes created, or given a new key after authorisation, by this replica.",
		}),
		refused: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "mesh_node_registrations_refused_total", Help: "Registrations that this replica refused, for their key or by the policy.",
		}),
	}
	s.delayed = prometheus.NewCounter(prometheus.CounterOpts{
		Name: "mesh_node_reports_delayed_total", Help: "Node reports that exceeded the rate limit of their node and were merged, to be committed later.",
	})
	if c.PolicyFile != "" {
		s.policyFile = &policyFile{path: c.PolicyFile}
	}
	c.Registerer.MustRegister(s.registrations, s.refused, s.delayed, s.policyHealth.gauge())
	nodeGauges(c.Registerer, c.Ledger)
	return s
}

// nodeGauges describe the whole network, the same on every replica.
func nodeGauges(reg prometheus.Registerer, l *ledger.Ledger) {
	gauge := func(name, help string, value func(*mesh.Snapshot) int) {
		reg.MustRegister(prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: name, Help: help},
			func() float64 { return float64(value(l.World().Snapshot)) }))
	}
	gauge("mesh_nodes_total", "All stored nodes.", (*mesh.Snapshot).NodeCount)
	gauge("mesh_nodes_registered", "Nodes that are not expired.", func(s *mesh.Snapshot) int {
		now, n := l.Now(), 0
		for node := range s.Nodes() {
			if !node.Expired(now) {
				n++
			}
		}
		return n
	})
	gauge("mesh_nodes_online", "Nodes with a live stream on any replica.", (*mesh.Snapshot).OnlineCount)
	gauge("mesh_nodes_offline", "Nodes without a live stream.", func(s *mesh.Snapshot) int { return s.NodeCount() - s.OnlineCount() })
}

// logFor names who asked in every line about it.
func (s *Service) logFor(a mesh.Actor) *slog.Logger {
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

// addresses picks the addresses of a new node.
func (s *Service) addresses(draw uint64) func(w *mesh.Snapshot) (v4, v6 netip.Addr, err error) {
	return func(w *mesh.Snapshot) (v4, v6 netip.Addr, err error) {
		start4, start6 := w.Counters.V4, w.Counters.V6
		if s.randomAddresses {
			start4, start6 = mesh.AddrAt(s.prefixV4, draw), mesh.AddrAt(s.prefixV6, draw)
		}
		if v4, err = w.NextAddr(s.prefixV4, start4); err != nil {
			return v4, v6, fmt.Errorf("%s: %w", s.prefixV4, err)
		}
		if v6, err = w.NextAddr(s.prefixV6, start6); err != nil {
			return v4, v6, fmt.Errorf("%s: %w", s.prefixV6, err)
		}
		return v4, v6, nil
	}
}
