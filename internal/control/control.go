// Package control holds the use cases: what may be done to the network, by whom, and with
// which consequences. Each use case validates its input, commits one decision, and logs
// what an operator needs to know.
//
// It knows neither HTTP nor storage: it imports ledger, identity, policy and mesh. It
// starts no goroutine.
package control

import (
	"cmp"
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

// Config configures the use cases. Ledger, History, Log and Registerer are required.
type Config struct {
	Ledger     *ledger.Ledger
	History    history.Reader
	Log        *slog.Logger
	Registerer prometheus.Registerer
	// PrefixV4 and PrefixV6 are the ranges from which nodes get their addresses.
	PrefixV4, PrefixV6 netip.Prefix
	// RandomAddresses assigns random addresses instead of consecutive ones.
	RandomAddresses bool
	// NodeExpiry is how long a new node stays authenticated; zero means forever. Tagged
	// nodes never expire.
	NodeExpiry time.Duration
	// SessionExpiry is how long a person stays signed in to the console and the command line;
	// zero means SessionLifetime.
	SessionExpiry time.Duration
	// NodeApproval makes new nodes wait until an administrator approves them, unless they
	// join with a pre-approved key.
	NodeApproval bool
	// SessionCodes seals the codes that programs exchange for sessions. If it is nil, there are
	// none.
	SessionCodes *identity.CookieSealer
	// RefreshTokens seals the refresh tokens of people who signed in, and Recheck says how
	// often each issuer is asked whether it still accepts them. Without both, it is not.
	RefreshTokens *identity.TokenSealer
	Recheck       map[string]time.Duration
	// UserApproval makes people who sign in for the first time wait until an administrator
	// approves them.
	UserApproval bool
	// Quotas limits the number of nodes.
	Quotas Quotas
	// Logins creates the links for devices that ask to join without a key; they point to
	// ServerURL. If Logins is nil, such devices are refused.
	Logins    *identity.LoginSealer
	ServerURL string
	// PasskeysErr is why nobody can use passkeys with ServerURL; nil if they can.
	PasskeysErr error
	// Webhooks creates the secrets of webhooks. Deliver sends one event to the receiver of
	// one webhook, without retries.
	Webhooks *identity.WebhookSecrets
	Deliver  func(context.Context, *mesh.Webhook, history.AuditRow) WebhookAnswer
	// Keys creates and stores the Noise key.
	Keys Keyring
	// LocalWebhooks allows receivers with addresses for which IsLocal returns true.
	LocalWebhooks bool
	// PolicyFile is the path of the policy file. If it is empty, the policy is the version
	// saved last.
	PolicyFile string
	// RecordsFile is the path of the file with DNS records; empty if there is none.
	RecordsFile string
	// Roles decides which role people have who were not assigned one.
	Roles mesh.RoleRules
	// ProviderGroups says that people can sign in, so that the policy may use groups that
	// no user has yet.
	ProviderGroups bool
}

// Service groups the use cases by subject. Each part depends only on the parts named in its own
// type.
type Service struct {
	Users        *Users
	Nodes        *Nodes
	PreAuthKeys  *PreAuthKeys
	APIKeys      *APIKeys
	Sessions     *Sessions
	Rechecks     *Rechecks
	Passkeys     *Passkeys
	Routes       *Routes
	DNS          *DNS
	Relays       *Relays
	Policies     *Policies
	PolicyFile   *PolicyFile
	RecordsFile  *RecordsFile
	PolicyWatch  *PolicyWatch
	Joins        *Joins
	Reservations *Reservations
	Logins       *Logins
	SSH          *SSH
	Clients      *Clients
	Directory    *Directory
	Observations *Observations
	Webhooks     *Webhooks
	NoiseKeys    *NoiseKeys
	History      *History
}

// core is what all use cases share. It has no exported methods, so embedding it does not
// widen the API of a type.
type core struct {
	ledger             *ledger.Ledger
	history            history.Reader
	log                *slog.Logger
	prefixV4, prefixV6 netip.Prefix
	refusals           *identity.RefusalLog
	// nodeApproval and userApproval say whether new nodes, and people who sign in for the
	// first time, need approval.
	nodeApproval, userApproval bool
	roles                      mesh.RoleRules
	providerGroups             bool
	slow                       *slowKeys
}

// New returns the use cases over an open ledger.
func New(c Config) *Service {
	shared := &core{
		ledger: c.Ledger, history: c.History, log: c.Log, prefixV4: c.PrefixV4, prefixV6: c.PrefixV6, nodeApproval: c.NodeApproval, userApproval: c.UserApproval, refusals: identity.NewRefusalLog(c.Log),
		roles:          c.Roles,
		providerGroups: c.ProviderGroups,
		slow:           newSlowKeys(),
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
		Sessions:     &Sessions{core: shared, lifetime: cmp.Or(c.SessionExpiry, SessionLifetime), sealer: c.SessionCodes},
		Rechecks:     &Rechecks{core: shared, tokens: c.RefreshTokens, every: c.Recheck},
		Passkeys:     &Passkeys{core: shared, serverURL: logins.serverURL, err: c.PasskeysErr},
		Directory:    &Directory{shared},
		Routes:       &Routes{shared},
		DNS:          &DNS{core: shared},
		Relays:       &Relays{core: shared},
		Reservations: &Reservations{shared},
		Policies:     &Policies{core: shared, file: file},
		PolicyFile:   file,
		RecordsFile:  &RecordsFile{core: shared, path: c.RecordsFile},
		PolicyWatch:  newPolicyWatch(shared, file, c.Registerer),
		Joins:        newJoins(shared, logins, c),
		Logins:       logins,
		SSH:          ssh,
		Clients:      newClients(shared, observations, c.Registerer),
		Observations: observations,
		NoiseKeys:    newNoiseKeys(shared, observations, c.Keys, c.Registerer),
		Webhooks: &Webhooks{
			core: shared, audit: audit, secrets: c.Webhooks, deliver: c.Deliver, allowLocal: c.LocalWebhooks,
		},
		History: audit,
	}
}

// nodeGauges registers gauges that describe the whole network. They are the same on every
// replica.
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
	gauge("mesh_nodes_unapproved", "Nodes that wait for approval by an administrator.", func(s *mesh.Snapshot) (n int) {
		for node := range s.Nodes.All() {
			if node.NeedsApproval {
				n++
			}
		}
		return n
	})
	gauge("mesh_nodes_online", "Nodes that are connected to any replica.", func(s *mesh.Snapshot) int { return s.Nodes.OnlineCount() })
	gauge("mesh_nodes_offline", "Nodes that are not connected to any replica.", func(s *mesh.Snapshot) int { return s.Nodes.Len() - s.Nodes.OnlineCount() })
}

// logFor returns a logger that adds the actor and the request id to every line.
func (s *core) logFor(a mesh.Actor) *slog.Logger {
	return s.log.With("actor", a.String(), "req", a.RequestID)
}

// Reason classifies a Refusal.
type Reason int

// The reasons. Each transport maps them to its own status codes.
const (
	Invalid   Reason = iota // the request is invalid in any state
	NotFound                // it names an object that does not exist
	Conflict                // it conflicts with an existing object
	Stale                   // the object has changed since the version that the request names
	BadKey                  // the pre-auth key does not allow this node to join
	Denied                  // the policy does not allow it
	Forbidden               // the caller's API key lacks the permission
	Suspended               // the user of the device is suspended
)

// Refusal is an error for the caller, not an internal one. Its text says what to do.
type Refusal struct {
	Reason Reason
	Path   string // the offending field of the request, if any; for Stale, the kind of object that changed
	Object string // for Stale, the id of the object that changed, if there can be several
	Text   string
}

func (r *Refusal) Error() string { return r.Text }

func refuse(reason Reason, path, format string, args ...any) error {
	return &Refusal{Reason: reason, Path: path, Text: fmt.Sprintf(format, args...)}
}

// checkText limits text that is stored: it must be short, valid UTF-8 and printable. Both
// databases store such text unchanged, and terminals and documents display it unchanged.
func checkText(path, text string, limit int) error {
	switch {
	case len(text) > limit:
		return refuse(Invalid, path, "%s is longer than %d bytes", path, limit)
	case !utf8.ValidString(text), strings.ContainsRune(text, utf8.RuneError): // decoders insert RuneError for invalid input
		return refuse(Invalid, path, "%s is not valid UTF-8", path)
	}
	if i := strings.IndexFunc(text, unprintable); i >= 0 {
		r, _ := utf8.DecodeRuneInString(text[i:])
		return refuse(Invalid, path, "%s contains the unprintable character %U", path, r)
	}
	return nil
}

// unprintable reports whether a character does not belong in a line of text: control characters,
// marks that change direction or break the line, and unassigned code points. Zero-width
// joiners are allowed, because scripts and emoji need them.
func unprintable(r rune) bool {
	const zeroWidthNonJoiner, zeroWidthJoiner = 0x200c, 0x200d
	return !unicode.IsGraphic(r) && r != zeroWidthNonJoiner && r != zeroWidthJoiner
}

// cleanHostname replaces each character that checkText would refuse with a hyphen. It never
// fails, because nobody can change the hostname that an unknown device sends.
func cleanHostname(name string) string {
	return strings.Map(func(r rune) rune {
		if unprintable(r) || r == utf8.RuneError {
			return '-'
		}
		return r
	}, name)
}
