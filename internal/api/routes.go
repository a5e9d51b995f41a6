package api

import (
	"cmp"
	"fmt"
	"net/http"
	"net/netip"
	"slices"
	"strconv"

	"github.com/fairlead-mesh/fairlead/internal/api/openapi"
	"github.com/fairlead-mesh/fairlead/internal/control"
	"github.com/fairlead-mesh/fairlead/internal/mesh"
)

// routes handles the operations on routes.
type routes struct {
	*core
	control *control.Routes
}

// ListRoutes implements GET /api/v1/routes.
func (s *routes) ListRoutes(w http.ResponseWriter, r *http.Request, p openapi.ListRoutesParams) {
	part, err := pageOf(p.Limit, p.Cursor)
	var prefix netip.Prefix
	if err == nil && or(p.Prefix) != "" {
		prefix, err = network("prefix", *p.Prefix)
	}
	snap := s.ledger.World().Snapshot
	var node *mesh.Node
	if err == nil && or(p.Node) != "" {
		node, snap, err = s.findNode(r, *p.Node)
	}
	if err != nil {
		s.fail(w, r, err)
		return
	}
	s.replyRoutes(w, snap, part, func(route control.NodeRoute) bool {
		return (node == nil || route.Node == node) && (!prefix.IsValid() || route.Prefix == prefix) &&
			matches(p.Enabled, route.Enabled) && matches(p.Advertised, route.Announced()) && matches(p.Primary, route.Primary())
	})
}

// ListNodeRoutes implements GET /api/v1/node/{nodeId}/routes.
func (s *routes) ListNodeRoutes(w http.ResponseWriter, r *http.Request, nodeID string) {
	node, snap, err := s.findNode(r, nodeID)
	if err != nil {
		s.fail(w, r, err)
		return
	}
	s.replyRoutes(w, snap, page{}, func(route control.NodeRoute) bool { return route.Node == node })
}

// replyRoutes sends a page of the routes that match a filter.
func (s *routes) replyRoutes(w http.ResponseWriter, snap *mesh.Snapshot, part page, wanted func(control.NodeRoute) bool) {
	routes := slices.DeleteFunc(control.RoutesIn(snap), func(r control.NodeRoute) bool { return !wanted(r) })
	slices.SortFunc(routes, func(a, b control.NodeRoute) int { return cmp.Compare(a.Route.ID, b.Route.ID) })
	at := s.ledger.Now()
	lister[control.NodeRoute, mesh.RouteID]{
		name: "routes", id: func(r control.NodeRoute) mesh.RouteID { return r.Route.ID },
		encode: func(r control.NodeRoute) []byte { return encoded(routeShape(snap, r, at)) },
	}.reply(w, snap, part, slices.Values(routes))
}

// ShowRouteHistory implements GET /api/v1/routes/{routeId}/history.
func (s *routes) ShowRouteHistory(w http.ResponseWriter, r *http.Request, routeID string, p openapi.ShowRouteHistoryParams) {
	id, err := routeRef(routeID)
	var route control.NodeRoute
	var snap *mesh.Snapshot
	if err == nil {
		route, snap, err = search(r, s.ledger, func(snap *mesh.Snapshot) (control.NodeRoute, error) { return control.FindRoute(snap, id) })
	}
	s.replyHistory(w, r, snap, route.Prefix, p.Limit, err)
}

// ShowNetworkHistory implements GET /api/v1/routes/history.
func (s *routes) ShowNetworkHistory(w http.ResponseWriter, r *http.Request, p openapi.ShowNetworkHistoryParams) {
	prefix, err := network("prefix", p.Prefix)
	s.replyHistory(w, r, s.ledger.World().Snapshot, prefix, p.Limit, err)
}

// replyHistory sends the nodes that were primary for a prefix, or err.
func (s *routes) replyHistory(w http.ResponseWriter, r *http.Request, snap *mesh.Snapshot, prefix netip.Prefix, limit *int, err error) {
	var terms []control.Term
	if err == nil {
		terms, err = s.control.History(r.Context(), prefix, rowLimit(limit))
	}
	if err != nil {
		s.fail(w, r, err)
		return
	}
	out := openapi.RouteHistory{Prefix: prefix.String(), Terms: []openapi.RouteTerm{}}
	for _, t := range terms {
		out.Terms = append(out.Terms, openapi.RouteTerm{NodeID: t.Node.String(), NodeName: t.Name, From: t.At.Time(), Until: moment(t.Until)})
	}
	reply(w, snap, out)
}

func routeShape(s *mesh.Snapshot, r control.NodeRoute, at mesh.Time) openapi.Route {
	shape := openapi.Route{
		ID: r.Route.ID.String(), Node: nodeShape(s, r.Node, at), Prefix: r.Prefix.String(), Advertised: r.Announced(), Enabled: r.Enabled,
		IsPrimary: r.Primary(), Preference: r.Preference, CreatedAt: r.Route.CreatedAt.Time(), UpdatedAt: r.Route.UpdatedAt.Time(),
	}
	switch {
	case !r.Enabled:
	case r.Decided:
		shape.ApprovedBy = openapi.RouteApprovedByAdministrator
	default:
		shape.ApprovedBy = openapi.RouteApprovedByPolicy
		if r.ApprovedBy != 0 {
			shape.PolicyVersion = r.ApprovedBy.String()
		}
	}
	return shape
}

// EnableRoute implements POST /api/v1/routes/{routeId}/enable.
func (s *routes) EnableRoute(w http.ResponseWriter, r *http.Request, routeID string, p openapi.EnableRouteParams) {
	s.decideRoute(w, r, routeID, true, p.IfMatch)
}

// DisableRoute implements POST /api/v1/routes/{routeId}/disable.
func (s *routes) DisableRoute(w http.ResponseWriter, r *http.Request, routeID string, p openapi.DisableRouteParams) {
	s.decideRoute(w, r, routeID, false, p.IfMatch)
}

func (s *routes) decideRoute(w http.ResponseWriter, r *http.Request, routeID string, enabled bool, ifMatch *openapi.IfMatch) {
	id, err := routeRef(routeID)
	var route control.NodeRoute
	if err == nil {
		route, err = s.control.Enable(r.Context(), actor(r), id, enabled, ifRevision(ifMatch))
	}
	s.replyRoute(w, r, route, err)
}

// ChangeRoute implements PATCH /api/v1/routes/{routeId}.
func (s *routes) ChangeRoute(w http.ResponseWriter, r *http.Request, routeID string, p openapi.ChangeRouteParams) {
	var in openapi.RouteChange
	err := decode(w, r, &in)
	var id mesh.RouteID
	if err == nil {
		id, err = routeRef(routeID)
	}
	var route control.NodeRoute
	if err == nil {
		route, err = s.control.Prefer(r.Context(), actor(r), id, in.Preference, ifRevision(p.IfMatch))
	}
	s.replyRoute(w, r, route, err)
}

func (s *routes) replyRoute(w http.ResponseWriter, r *http.Request, route control.NodeRoute, err error) {
	if err != nil {
		s.fail(w, r, err)
		return
	}
	snap := s.ledger.World().Snapshot
	w.Header().Set("ETag", etag(control.NodeRevision(route.Node)))
	reply(w, snap, openapi.RouteResult{Route: routeShape(snap, route, s.ledger.Now())})
}

func (*routes) replayRoute(c replayed) (any, error) {
	id, err := routeRef(c.r.PathValue("routeId"))
	if err != nil {
		return nil, err
	}
	route, err := control.FindRoute(c.snap, id)
	if err != nil {
		return nil, err
	}
	c.w.Header().Set("ETag", etag(control.NodeRevision(route.Node)))
	return openapi.RouteResult{Route: routeShape(c.snap, route, c.now)}, nil
}

// DeleteRoute implements DELETE /api/v1/routes/{routeId}.
func (s *routes) DeleteRoute(w http.ResponseWriter, r *http.Request, routeID string, p openapi.DeleteRouteParams) {
	id, err := routeRef(routeID)
	if err == nil {
		err = s.control.Delete(r.Context(), actor(r), id, ifRevision(p.IfMatch))
	}
	s.done(w, r, err)
}

// ApproveRoutes implements POST /api/v1/node/{nodeId}/approve_routes.
func (s *routes) ApproveRoutes(w http.ResponseWriter, r *http.Request, nodeID string, p openapi.ApproveRoutesParams) {
	var in openapi.NodeRoutesChange
	err := decodeOrNone(w, r, maxBody, &in, "routes", func() bool { return in.Routes == nil })
	var prefixes []netip.Prefix
	for i, text := range in.Routes {
		var prefix netip.Prefix
		// Headscale accepts 10.1.0.5/24. Here it means the network, except that 0.0.0.0/0
		// and ::/0 must be written exactly: nobody writes an exit route that way on
		// purpose.
		if loose, wrong := netip.ParsePrefix(text); wrong == nil && loose.Bits() > 0 {
			text = loose.Masked().String()
		}
		if prefix, err = network(fmt.Sprintf("routes[%d]", i), text); err != nil {
			break
		}
		prefixes = append(prefixes, prefix)
	}
	var n *mesh.Node
	if err == nil {
		n, err = s.control.Approve(r.Context(), actor(r), nodeID, prefixes, ifRevision(p.IfMatch))
	}
	s.replyNode(w, r, n, err)
}

func network(path, text string) (netip.Prefix, error) {
	p, err := netip.ParsePrefix(text)
	if err != nil {
		return p, &badRequest{path, fmt.Sprintf("invalid network %q: use CIDR notation such as 192.168.7.0/24", text)}
	}
	if p != p.Masked() { // it would match nothing
		return p, &badRequest{path, fmt.Sprintf("invalid network %s: host bits are set; use %s", p, p.Masked())}
	}
	return p, nil
}

// routeRef parses the id of a route. Text that is not an id is reported as not found.
func routeRef(text string) (mesh.RouteID, error) {
	id, err := strconv.ParseInt(text, 10, 64)
	if err != nil || id < 1 {
		return 0, &control.Refusal{Reason: control.NotFound, Text: fmt.Sprintf("unknown route %q; list routes with: fairlead routes list", text)}
	}
	return mesh.RouteID(id), nil
}
