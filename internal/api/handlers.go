package api

import (
	"sync"

	"github.com/fairlead-mesh/fairlead/internal/api/openapi"
	"github.com/fairlead-mesh/fairlead/internal/apidocs"
	"github.com/fairlead-mesh/fairlead/internal/control"
	"github.com/fairlead-mesh/fairlead/internal/history"
)

// handlers implements the generated interface. Each type that it embeds handles the
// operations on one kind of object, and depends only on the use cases that it calls.
type handlers struct {
	users
	preAuthKeys
	apiKeys
	sessions
	passkeys
	reservations
	nodeList
	nodes
	machines
	routes
	logins
	sshSessions
	dns
	policies
	policyQuestions
	audit
	events
	presences
	webhooks
	relays
	serverState
	clusterState
	noiseKeys
	diagnostics
	probes
	documents
}

var _ openapi.ServerInterface = (*handlers)(nil)

func newHandlers(c Config, shared *core) *handlers {
	use, cluster := c.Control, c.Ledger.Cluster()
	tail := control.NewTail(use.History, eventOf, func(e event) history.Position { return e.at })
	page := sync.OnceValues(func() ([]byte, error) { return apidocs.Render(c.Document) })
	return &handlers{
		users:           users{core: shared, control: use.Users},
		preAuthKeys:     preAuthKeys{shared, use.PreAuthKeys},
		apiKeys:         apiKeys{shared, use.APIKeys, use.Observations},
		sessions:        sessions{shared, use.Sessions, use.Observations, c.SignIn},
		passkeys:        passkeys{shared, use.Passkeys},
		reservations:    reservations{shared, use.Reservations},
		nodeList:        nodeList{core: shared, observations: use.Observations},
		nodes:           nodes{shared, use.Nodes},
		machines:        machines{shared, use.Joins},
		routes:          routes{shared, use.Routes},
		logins:          logins{shared, use.Logins},
		sshSessions:     sshSessions{shared, use.SSH},
		dns:             dns{shared, use.DNS},
		policies:        policies{shared, use.Policies},
		policyQuestions: policyQuestions{shared, use.Policies, newTurns()},
		audit:           audit{shared, use.History},
		events:          events{core: shared, health: c.Health, closed: c.Closed, cursor: c.Ledger.Cursor, tail: tail, people: use.Users, keys: use.APIKeys},
		presences:       presences{shared, use.History},
		webhooks:        webhooks{shared, use.Webhooks},
		relays:          relays{shared, use.Relays},
		serverState:     serverState{shared, cluster, use.Observations, c.Version, c.Facts, c.Checks, c.Balancer},
		clusterState:    clusterState{shared, c.Cluster, c.Checks, &relays{shared, use.Relays}},
		noiseKeys:       noiseKeys{shared, use.NoiseKeys},
		diagnostics:     diagnostics{shared, cluster},
		probes:          probes{shared, c.Health, c.Ready, c.Ledger.Status().Health, c.Version},
		documents:       documents{shared, c.Document, page},
	}
}
