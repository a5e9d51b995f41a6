package api_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// route approves one more prefix for the fixture's node, which does not advertise it,
// and returns the ID of the route.
func (f fixture) route(prefix string) (id string) {
	f.t.Helper()
	path := "/api/v1/node/" + f.node
	approved := f.call("GET", path, nil).ok()["node"].(object)["approvedRoutes"].([]any)
	f.call("POST", path+"/approve_routes", object{"routes": append(approved, prefix)}).ok()
	for _, r := range f.call("GET", "/api/v1/routes?prefix="+prefix, nil).ok()["routes"].([]any) {
		id = r.(object)["id"].(string)
	}
	return id
}

// routers registers nodes that each advertise these routes.
func routers(s *service, nodes uint64, advertised ...string) {
	s.t.Helper()
	s.newUser("alice")
	key := s.preAuthKey(object{"user": "alice", "reusable": true})
	for n := range nodes {
		m := machine(n, key)
		m["routableIPs"] = advertised
		s.register(m).ok()
	}
}

// listed formats routes as returned by the API: ID, node, prefix and state.
func (s *service) listed(query string) string {
	s.t.Helper()
	var lines []string
	for _, r := range s.call("GET", "/api/v1/"+query, nil).ok()["routes"].([]any) {
		r := r.(object)
		line := fmt.Sprint(r["id"], " ", r["node"].(object)["givenName"], " ", r["prefix"])
		for _, member := range []string{"advertised", "enabled", "isPrimary"} {
			if r[member].(bool) {
				line += " " + member
			}
		}
		lines = append(lines, line)
	}
	return strings.Join(lines, ", ")
}

func TestRoutesAreEnabledAndDisabled(t *testing.T) {
	s := sqlite(t)
	routers(s, 2, "10.1.0.0/16")
	const waiting = "1 host-0 10.1.0.0/16 advertised, 2 host-1 10.1.0.0/16 advertised"
	if got := s.listed("routes"); got != waiting {
		t.Errorf("advertised: %s", got)
	}
	r := s.call("POST", "/api/v1/routes/2/enable", nil).ok()["route"].(object)
	if r["id"] != "2" || r["enabled"] != true || r["isPrimary"] != true || r["preference"] != 0.0 || r["deletedAt"] != nil {
		t.Errorf("enabled: %v", r)
	}
	n := s.call("GET", "/api/v1/node/2", nil).ok()["node"].(object)
	for _, member := range []string{"availableRoutes", "approvedRoutes", "subnetRoutes"} {
		if diff := cmp.Diff([]any{"10.1.0.0/16"}, n[member]); diff != "" {
			t.Errorf("%s of the node (-want +got):\n%s", member, diff)
		}
	}
	s.call("POST", "/api/v1/routes/1/enable", nil).ok()
	if got := s.listed("routes?enabled=true"); got != "1 host-0 10.1.0.0/16 advertised enabled, 2 host-1 10.1.0.0/16 advertised enabled isPrimary" {
		t.Errorf("both enabled: %s", got)
	}
	r = s.call("POST", "/api/v1/routes/2/disable", nil).ok()["route"].(object)
	if r["enabled"] != false || r["isPrimary"] != false {
		t.Errorf("disabled: %v", r)
	}
	if got := s.listed("routes?primary=true"); got != "1 host-0 10.1.0.0/16 advertised enabled isPrimary" {
		t.Errorf("the other takes over: %s", got)
	}
	s.call("POST", "/api/v1/routes/2/disable", nil).ok() // changes nothing, so nothing is logged
	var lines []string
	for _, phrase := range []string{"route enabled", "route disabled"} {
		for _, l := range s.log.lines(t, phrase) {
			lines = append(lines, fmt.Sprint(l["msg"], " ", l["name"], " ", l["route"]))
		}
	}
	want := []string{"route enabled host-1 10.1.0.0/16", "route enabled host-0 10.1.0.0/16", "route disabled host-1 10.1.0.0/16"}
	if diff := cmp.Diff(want, lines); diff != "" {
		t.Errorf("log (-want +got):\n%s", diff)
	}
}

func TestRouteNamesItsApprover(t *testing.T) {
	s := sqlite(t)
	routers(s, 1, "10.1.0.0/16", "10.2.0.0/16", "10.3.0.0/16")
	s.call("POST", "/api/v1/routes/2/enable", nil).ok()
	s.call("PUT", "/api/v1/policy", object{"policy": `{"acls": []}`}).ok()
	s.call("PUT", "/api/v1/policy", object{"policy": `{"acls": [], "autoApprovers": {"routes": {"10.1.0.0/16": ["alice"]}}}`}).ok()
	var got []string
	for _, r := range s.call("GET", "/api/v1/routes", nil).ok()["routes"].([]any) {
		got = append(got, fmt.Sprint(r.(object)["prefix"], " ", r.(object)["approvedBy"], " ", r.(object)["policyVersion"]))
	}
	if diff := cmp.Diff([]string{"10.1.0.0/16 policy 2", "10.2.0.0/16 administrator ", "10.3.0.0/16  "}, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestRoutesAreFiltered(t *testing.T) {
	s := sqlite(t)
	routers(s, 2, "10.1.0.0/16", "fd00:1::/64")
	s.call("POST", "/api/v1/node/host-1/approve_routes", object{"routes": []string{"10.1.0.0/16", "10.2.0.0/16"}}).ok()
	const (
		waiting4, waiting6 = "1 host-0 10.1.0.0/16 advertised", "2 host-0 fd00:1::/64 advertised"
		serving, later     = "3 host-1 10.1.0.0/16 advertised enabled isPrimary", "5 host-1 10.2.0.0/16 enabled"
		disabled6          = "4 host-1 fd00:1::/64 advertised"
	)
	for query, want := range map[string][]string{
		"routes":                              {waiting4, waiting6, serving, disabled6, later},
		"routes?node=host-0":                  {waiting4, waiting6},
		"routes?node=100.64.0.2":              {serving, disabled6, later},
		"node/2/routes":                       {serving, disabled6, later},
		"routes?prefix=10.1.0.0/16":           {waiting4, serving},
		"routes?prefix=fd00:1::/64&node=1":    {waiting6},
		"routes?prefix=10.0.0.0/8":            nil,
		"routes?enabled=true":                 {serving, later},
		"routes?enabled=false&node=2":         {disabled6},
		"routes?advertised=false":             {later},
		"routes?enabled=true&primary=false":   {later},
		"routes?advertised=true&enabled=true": {serving},
	} {
		if got := s.listed(query); got != strings.Join(want, ", ") {
			t.Errorf("%s: %s", query, got)
		}
	}
	s.call("GET", "/api/v1/routes?prefix=ten", nil).fails(400, "Bad Request", `invalid network "ten": use CIDR notation such as 192.168.7.0/24`, "prefix")
	s.call("GET", "/api/v1/routes?enabled=perhaps", nil).fails(400, "Bad Request", "invalid value for parameter enabled", "enabled")
	const nowhere = `unknown node "nowhere"; list nodes with: fairlead nodes list`
	s.call("GET", "/api/v1/routes?node=nowhere", nil).fails(404, "Not Found", nowhere, "")
	s.call("GET", "/api/v1/node/nowhere/routes", nil).fails(404, "Not Found", nowhere, "")
}

func TestApprovalOfANodeReplacesTheWholeList(t *testing.T) {
	s := sqlite(t)
	routers(s, 1, "10.1.0.0/16", "0.0.0.0/0", "::/0")
	path := "/api/v1/node/1/approve_routes"
	for _, c := range []struct {
		body             object
		approved, served []any
	}{
		{object{"routes": []string{"::/0"}}, []any{"0.0.0.0/0", "::/0"}, []any{"0.0.0.0/0", "::/0"}},
		{object{"routes": []string{"10.1.0.0/16", "10.2.0.0/16"}}, []any{"10.1.0.0/16", "10.2.0.0/16"}, []any{"10.1.0.0/16"}},
		{object{"routes": []string{}}, []any{}, []any{}},
		{object{"routes": []string{"10.1.0.0/16"}}, []any{"10.1.0.0/16"}, []any{"10.1.0.0/16"}},
		{object{"routes": nil}, []any{}, []any{}},
		{object{"routes": []string{"10.1.0.0/16"}}, []any{"10.1.0.0/16"}, []any{"10.1.0.0/16"}},
		{object{}, []any{}, []any{}},
		{object{"routes": []string{"10.1.2.3/16"}}, []any{"10.1.0.0/16"}, []any{"10.1.0.0/16"}},
	} {
		n := s.call("POST", path, c.body).ok()["node"].(object)
		if diff := cmp.Diff([][]any{c.approved, c.served}, [][]any{n["approvedRoutes"].([]any), n["subnetRoutes"].([]any)}); diff != "" {
			t.Errorf("%v: approved and served (-want +got):\n%s", c.body, diff)
		}
	}
	s.call("POST", path, "").fails(400, "Bad Request", "routes is required", "routes")
	s.call("POST", path, object{"route": []string{"10.1.0.0/16"}}).
		fails(400, "Bad Request", `unknown field "route": nothing was changed; known fields are routes`, "route")
	s.call("POST", path, object{"routes": []string{"10.1.2.3/0"}}).
		fails(400, "Bad Request", "invalid network 10.1.2.3/0: host bits are set; use 0.0.0.0/0", "routes[0]")
	s.call("POST", path, object{"routes": []string{"10.1.0.0/16", "ten"}}).
		fails(400, "Bad Request", `invalid network "ten": use CIDR notation such as 192.168.7.0/24`, "routes[1]")
	s.call("POST", "/api/v1/node/7/approve_routes", object{"routes": []string{}}).
		fails(404, "Not Found", `unknown node "7"; list nodes with: fairlead nodes list`, "")
}

func TestRoutesThatCannotBeChanged(t *testing.T) {
	s := sqlite(t)
	routers(s, 1, "10.1.0.0/16")
	s.call("DELETE", "/api/v1/routes/1", nil).
		fails(409, "Conflict", "node host-0 still advertises 10.1.0.0/16; disable the route instead, or stop advertising it there: tailscale set --advertise-routes=", "")
	for method, path := range map[string]string{"POST": "/enable", "DELETE": "", "PATCH": ""} {
		s.call(method, "/api/v1/routes/7"+path, object{"preference": 1}).
			fails(404, "Not Found", "unknown route 7; list routes with: fairlead routes list", "")
		s.call(method, "/api/v1/routes/ten"+path, object{"preference": 1}).
			fails(404, "Not Found", `unknown route "ten"; list routes with: fairlead routes list`, "")
	}
	for _, c := range []struct {
		body   object
		detail string
	}{
		{object{}, "preference is required"},
		{object{"preference": nil}, "preference is required"},
		{object{"preference": "high"}, "preference must be a whole number"},
		{object{"preference": 0.5}, "preference must be a whole number"},
		{object{"preference": 1001}, "preference must be a number from -1000 to 1000"},
	} {
		s.call("PATCH", "/api/v1/routes/1", c.body).fails(400, "Bad Request", c.detail, "preference")
	}
	for _, preference := range []any{10, "10", -1000} {
		r := s.call("PATCH", "/api/v1/routes/1", object{"preference": preference}).ok()["route"].(object)
		if fmt.Sprint(r["preference"]) != fmt.Sprint(preference) {
			t.Errorf("preference %v became %v", preference, r["preference"])
		}
	}
}

// Neither a person nor a policy can approve a route that overlaps addresses of the mesh.
func TestRoutesOverTheMeshAreRefused(t *testing.T) {
	s := sqlite(t)
	routers(s, 1, "10.1.0.0/16", "0.0.0.0/0", "::/0")
	s.call("POST", "/api/v1/node/1/approve_routes", object{"routes": []string{"10.1.0.0/16", "100.0.0.0/8"}}).
		fails(400, "Bad Request", "100.0.0.0/8 cannot be a route: it overlaps 100.64.0.0/10, which the mesh itself uses; use the network behind the router, or 0.0.0.0/0 and ::/0 for an exit node", "routes")
	for path, method := range map[string]string{"/api/v1/policy": "PUT", "/api/v1/policy/check": "POST"} {
		a := s.call(method, path, object{"policy": `{"autoApprovers": {"routes": {"100.64.0.0/10": ["alice"]}}}`})
		if a.status != 400 || !strings.Contains(string(a.body), "autoApprovers cannot approve 100.64.0.0/10") {
			t.Errorf("%s: %d %s", path, a.status, a.body)
		}
	}
	s.call("POST", "/api/v1/node/1/approve_routes", object{"routes": []string{"0.0.0.0/0"}}).ok()
	if got, want := s.listed("routes"), "1 host-0 0.0.0.0/0 advertised enabled isPrimary, 2 host-0 10.1.0.0/16 advertised, 3 host-0 ::/0 advertised enabled isPrimary"; got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}

func TestPolicyEnablesRoutesAndTheLogSaysSo(t *testing.T) {
	s := sqlite(t)
	const rules = `{"acls": [], "autoApprovers": {"routes": {"10.0.0.0/8": ["alice@"]}, "exitNode": ["alice@"]}}`
	routers(s, 1, "10.1.0.0/16", "192.168.7.0/24")
	s.call("PUT", "/api/v1/policy", object{"policy": rules}).ok()
	key := s.preAuthKey(object{"user": "alice"})
	m := machine(7, key)
	m["routableIPs"] = []string{"0.0.0.0/0", "::/0"}
	s.register(m).ok()
	want := "1 host-0 10.1.0.0/16 advertised enabled isPrimary, 2 host-0 192.168.7.0/24 advertised, " +
		"3 host-7 0.0.0.0/0 advertised enabled isPrimary, 4 host-7 ::/0 advertised enabled isPrimary"
	if got := s.listed("routes"); got != want {
		t.Errorf("%s", got)
	}
	var lines []string
	for _, l := range s.log.lines(t, "route enabled") {
		lines = append(lines, fmt.Sprint(l["name"], " ", l["route"]))
	}
	if diff := cmp.Diff([]string{"host-0 10.1.0.0/16", "host-7 0.0.0.0/0", "host-7 ::/0"}, lines); diff != "" {
		t.Errorf("log (-want +got):\n%s", diff)
	}
}

// The audit log shows which node served a network, and since when.
func TestAuditSaysWhoServedWhen(t *testing.T) {
	s := sqlite(t)
	routers(s, 2, "10.1.0.0/16")
	for _, call := range []string{"1/enable", "2/enable", "1/disable"} {
		s.call("POST", "/api/v1/routes/"+call, nil).ok()
	}
	var served []string
	for _, row := range s.audit() {
		const member = `"subnetRoutes":["10.1.0.0/16"]`
		before, after := strings.Contains(string(row.Before), member), strings.Contains(string(row.After), member)
		if before != after {
			served = append(served, fmt.Sprint(row.Object, " ", after))
		}
	}
	if diff := cmp.Diff([]string{"1 true", "1 false", "2 true"}, served); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
