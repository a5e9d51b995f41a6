package cli

import (
	"net/http"

	"github.com/fairlead-mesh/fairlead/internal/api/openapi"
)

func routes() []openapi.Route {
	primary := openapi.Route{
		ID: "7", Node: nodes()[0], Prefix: "192.168.7.0/24", Advertised: true, Enabled: true, IsPrimary: true, Preference: 10,
		ApprovedBy: openapi.RouteApprovedByPolicy, PolicyVersion: "7",
		CreatedAt: at("2026-02-01T09:10:00Z"), UpdatedAt: at("2026-02-02T00:00:00Z"),
	}
	waiting := primary
	waiting.ID, waiting.Node, waiting.Prefix = "12", nodes()[1], "fd00:7::/64"
	waiting.Enabled, waiting.IsPrimary, waiting.Preference = false, false, 0
	waiting.ApprovedBy, waiting.PolicyVersion = "", ""
	return []openapi.Route{primary, waiting}
}

func (canned) ListRoutes(w http.ResponseWriter, _ *http.Request, _ openapi.ListRoutesParams) {
	reply(w, openapi.RouteList{Routes: routes()})
}

func (canned) ListNodeRoutes(w http.ResponseWriter, _ *http.Request, _ string) {
	reply(w, openapi.RouteList{Routes: routes()[:1]})
}

func oneRoute(w http.ResponseWriter) { reply(w, openapi.RouteResult{Route: routes()[0]}) }

func (canned) EnableRoute(w http.ResponseWriter, _ *http.Request, _ string, _ openapi.EnableRouteParams) {
	oneRoute(w)
}

func (canned) DisableRoute(w http.ResponseWriter, _ *http.Request, _ string, _ openapi.DisableRouteParams) {
	oneRoute(w)
}

func (canned) ChangeRoute(w http.ResponseWriter, _ *http.Request, _ string, _ openapi.ChangeRouteParams) {
	oneRoute(w)
}

func (canned) DeleteRoute(w http.ResponseWriter, _ *http.Request, _ string, _ openapi.DeleteRouteParams) {
	reply(w, openapi.Empty{})
}

func (c canned) ShowNetworkHistory(w http.ResponseWriter, r *http.Request, _ openapi.ShowNetworkHistoryParams) {
	c.ShowRouteHistory(w, r, "", openapi.ShowRouteHistoryParams{})
}

func (canned) ShowRouteHistory(w http.ResponseWriter, _ *http.Request, _ string, _ openapi.ShowRouteHistoryParams) {
	reply(w, openapi.RouteHistory{Prefix: "192.168.7.0/24", Terms: []openapi.RouteTerm{
		{NodeID: "1", NodeName: "alices-laptop", From: at("2026-02-02T00:00:00Z")},
		{NodeID: "9", NodeName: "gone", From: at("2026-02-01T09:10:00Z"), Until: new(at("2026-02-02T00:00:00Z"))},
	}})
}

func (canned) ApproveRoutes(w http.ResponseWriter, _ *http.Request, _ string, _ openapi.ApproveRoutesParams) {
	node := nodes()[1]
	node.ApprovedRoutes = []string{"10.1.0.0/16", "192.168.7.0/24"}
	reply(w, openapi.NodeResult{Node: node})
}
