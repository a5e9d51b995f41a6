package api_test

import (
	"fmt"
	"maps"
	"net/http"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.yaml.in/yaml/v3"

	apispec "github.com/fairlead-mesh/fairlead/api"
	"github.com/fairlead-mesh/fairlead/internal/mesh"
)

// document is openapi.yaml as the server serves it.
type document struct{ root object }

func readDocument(t testing.TB) document {
	t.Helper()
	var root object
	if err := yaml.Unmarshal(apispec.Document, &root); err != nil {
		t.Fatal(err)
	}
	return document{root}
}

// follow resolves references.
func (d document) follow(v any) object {
	o, _ := v.(object)
	for {
		ref, ok := o["$ref"].(string)
		if !ok {
			return o
		}
		o = d.root
		for _, part := range strings.Split(strings.TrimPrefix(ref, "#/"), "/") {
			o, _ = o[part].(object)
		}
	}
}

// operations returns every operation by "METHOD path".
func (d document) operations() map[string]object {
	ops := map[string]object{}
	for path, item := range d.root["paths"].(object) {
		for method, op := range item.(object) {
			if method != "parameters" {
				ops[strings.ToUpper(method)+" "+path] = op.(object)
			}
		}
	}
	return ops
}

// fixture is a service with one object of each kind.
type fixture struct {
	*service
	user, preAuth, apiKey, node string // IDs
}

func populated(t testing.TB, s *service) fixture {
	t.Helper()
	f := fixture{service: s}
	f.user = s.call("POST", "/api/v1/user", object{"name": "alice"}).ok()["user"].(object)["id"].(string)
	key := s.call("POST", "/api/v1/preauthkey", object{"user": "alice", "reusable": true}).ok()["preAuthKey"].(object)
	f.preAuth = key["id"].(string)
	f.apiKey = s.call("POST", "/api/v1/apikey", nil).ok()["id"].(string)
	f.node = s.call("POST", "/api/v1/machine", machine(1, key["key"].(string)), noKey).ok()["node"].(object)["id"].(string)
	return f
}

// machine returns a request to register the n-th machine.
func machine(n uint64, preAuthKey string) object {
	return object{
		"preAuthKey": preAuthKey, "machineKey": machineKey(n), "nodeKey": nodeKey(n), "hostname": fmt.Sprintf("host-%d", n),
	}
}

// tagged returns a policy with a declared tag added.
func tagged(text string) string { return `{"tagOwners": {"tag:web": []}, ` + text[1:] }

// examples returns, for each operation, a request that succeeds on a fixture. A GET
// without an entry of its own is called with just the IDs of the fixture.
//
// long: it has an entry for each operation that needs more
func examples(doc document) map[string]func(f fixture) *answer {
	withPolicy := func(method, path string, body any) func(fixture) *answer {
		return func(f fixture) *answer {
			f.call("PUT", "/api/v1/policy", object{"policy": tagged(allowAll)}).ok()
			return f.call(method, path, body)
		}
	}
	pending := func(path string) func(fixture) *answer {
		return func(f fixture) *answer {
			f.call("PUT", "/api/v1/policy", object{"policy": tagged(allowAll)}).ok()
			f.call("PUT", "/api/v1/policy", object{"policy": tagged(allowNone), "confirmWithin": "1m"}).ok()
			return f.call("POST", path, nil)
		}
	}
	calls := map[string]func(f fixture) *answer{
		"POST /api/v1/server/drain": func(f fixture) *answer {
			return f.call("POST", "/api/v1/server/drain", object{"draining": true})
		},
		"POST /api/v1/server/noise-key/rotate": func(f fixture) *answer {
			f.call("POST", "/api/v1/server/noise-key/retire", object{"force": true}) // examples may run in any order
			return f.call("POST", "/api/v1/server/noise-key/rotate", nil)
		},
		"POST /api/v1/server/noise-key/retire": func(f fixture) *answer {
			f.call("POST", "/api/v1/server/noise-key/rotate", nil)
			return f.call("POST", "/api/v1/server/noise-key/retire", object{"force": true})
		},
		"GET /api/v1/policy":                    withPolicy("GET", "/api/v1/policy", nil),
		"GET /api/v1/policy/diff":               withPolicy("GET", "/api/v1/policy/diff", nil),
		"GET /api/v1/policy/versions":           withPolicy("GET", "/api/v1/policy/versions", nil),
		"GET /api/v1/policy/versions/{version}": withPolicy("GET", "/api/v1/policy/versions/1", nil),
		"GET /api/v1/policy/why":                withPolicy("GET", "/api/v1/policy/why?from=100.64.0.1&to=100.64.0.2&port=22", nil),
		"PUT /api/v1/policy": func(f fixture) *answer {
			return f.call("PUT", "/api/v1/policy", object{"policy": tagged(allowNone), "reason": "begin closed"})
		},
		"POST /api/v1/policy/check":    withPolicy("POST", "/api/v1/policy/check", object{"policy": tagged(allowNone)}),
		"POST /api/v1/policy/preview":  withPolicy("POST", "/api/v1/policy/preview", object{"policy": tagged(allowNone), "viewer": "100.64.0.1"}),
		"POST /api/v1/policy/why":      withPolicy("POST", "/api/v1/policy/why", object{"policy": tagged(allowNone), "from": "100.64.0.1", "to": "tag:web", "port": "22"}),
		"POST /api/v1/policy/access":   withPolicy("POST", "/api/v1/policy/access", object{"policy": tagged(allowNone), "from": []string{"tag:web"}, "by": "users"}),
		"POST /api/v1/policy/test":     withPolicy("POST", "/api/v1/policy/test", nil),
		"POST /api/v1/policy/rollback": withPolicy("POST", "/api/v1/policy/rollback", object{"version": "1"}),
		"POST /api/v1/policy/confirm":  pending("/api/v1/policy/confirm"),
		"POST /api/v1/policy/revert":   pending("/api/v1/policy/revert"),

		"GET /api/v1/events": func(f fixture) *answer {
			c := f.consume()
			c.close()
			return &answer{f.t, c.status, c.header, nil}
		},
		"GET /api/v1/presence": func(f fixture) *answer {
			f.move(1, true)
			return f.call("GET", "/api/v1/presence", nil)
		},
		"GET /api/v1/routes/history": func(f fixture) *answer {
			return f.call("GET", "/api/v1/routes/history?prefix=10.9.0.0/16", nil)
		},
		"GET /api/v1/routes/{routeId}/history": func(f fixture) *answer {
			return f.call("GET", "/api/v1/routes/"+f.route("10.9.0.0/16")+"/history", nil)
		},
		"DELETE /api/v1/node/{nodeId}": func(f fixture) *answer {
			return f.call("DELETE", "/api/v1/node/"+f.node, nil)
		},
		"POST /api/v1/node/{nodeId}/expire": func(f fixture) *answer {
			return f.call("POST", "/api/v1/node/"+f.node+"/expire", object{"disableExpiry": true})
		},
		"POST /api/v1/node/{nodeId}/rename/{newName}": func(f fixture) *answer {
			return f.call("POST", "/api/v1/node/"+f.node+"/rename/web", nil)
		},
		"POST /api/v1/node/{nodeId}/rename": func(f fixture) *answer {
			return f.call("POST", "/api/v1/node/"+f.node+"/rename", nil)
		},
		"POST /api/v1/node/{nodeId}/tags": func(f fixture) *answer {
			return f.call("POST", "/api/v1/node/"+f.node+"/tags", object{"tags": []string{"tag:web"}})
		},
		"POST /api/v1/node/{nodeId}/user": func(f fixture) *answer {
			f.call("POST", "/api/v1/user", object{"name": "dora"}).ok()
			key := f.call("POST", "/api/v1/preauthkey", object{"user": f.user}).ok()["preAuthKey"].(object)["key"].(string)
			id := f.call("POST", "/api/v1/machine", machine(3, key), noKey).ok()["node"].(object)["id"].(string)
			return f.call("POST", "/api/v1/node/"+id+"/user?user=dora", nil)
		},
		"PUT /api/v1/node/{nodeId}/note": func(f fixture) *answer {
			return f.call("PUT", "/api/v1/node/"+f.node+"/note", object{"text": "rack 7"})
		},
		"PUT /api/v1/node/{nodeId}/approval": func(f fixture) *answer {
			return f.call("PUT", "/api/v1/node/"+f.node+"/approval", object{"approved": false})
		},
		"PUT /api/v1/node/{nodeId}/addresses": func(f fixture) *answer {
			return f.call("PUT", "/api/v1/node/"+f.node+"/addresses", object{"ipv4": "100.64.7.1"})
		},
		"GET /api/v1/node/{nodeId}/routes": func(f fixture) *answer {
			f.route("10.9.0.0/16")
			return f.call("GET", "/api/v1/node/"+f.node+"/routes", nil)
		},
		"POST /api/v1/node/{nodeId}/approve_routes": func(f fixture) *answer {
			return f.call("POST", "/api/v1/node/"+f.node+"/approve_routes", object{"routes": []string{"10.1.0.0/16", "::/0"}})
		},
		"POST /api/v1/routes/{routeId}/enable": func(f fixture) *answer {
			return f.call("POST", "/api/v1/routes/"+f.route("10.2.0.0/16")+"/enable", nil)
		},
		"POST /api/v1/routes/{routeId}/disable": func(f fixture) *answer {
			return f.call("POST", "/api/v1/routes/"+f.route("10.3.0.0/16")+"/disable", nil)
		},
		"PATCH /api/v1/routes/{routeId}": func(f fixture) *answer {
			return f.call("PATCH", "/api/v1/routes/"+f.route("10.4.0.0/16"), object{"preference": 10})
		},
		"DELETE /api/v1/routes/{routeId}": func(f fixture) *answer {
			return f.call("DELETE", "/api/v1/routes/"+f.route("10.5.0.0/16"), nil)
		},
		"PATCH /api/v1/dns": func(f fixture) *answer {
			return f.call("PATCH", "/api/v1/dns", object{"nameservers": []string{"9.9.9.9"}, "extraRecords": []object{{"name": "a.example", "type": "A", "value": "10.0.0.1"}}})
		},
		"DELETE /api/v1/dns": func(f fixture) *answer {
			f.configuredDNS(mesh.DNS{}, false)
			return f.call("DELETE", "/api/v1/dns", nil)
		},
		"POST /api/v1/node/expire": func(f fixture) *answer {
			return f.call("POST", "/api/v1/node/expire", object{"all": true})
		},
		"POST /api/v1/node/backfillips": func(f fixture) *answer {
			return f.call("POST", "/api/v1/node/backfillips?confirmed=true", nil)
		},
		"POST /api/v1/node/bulk": func(f fixture) *answer {
			return f.call("POST", "/api/v1/node/bulk", object{"ids": []string{f.node, "4711"}, "action": "approveRoutes"})
		},
		"POST /api/v1/preauthkey/bulk": func(f fixture) *answer {
			return f.call("POST", "/api/v1/preauthkey/bulk", object{"ids": []string{f.preAuth, "4711"}, "action": "expire"})
		},
		"POST /api/v1/user/bulk": func(f fixture) *answer {
			return f.call("POST", "/api/v1/user/bulk", object{"ids": []string{f.newUser("erna")}, "action": "delete"})
		},
		"POST /api/v1/node/register": func(f fixture) *answer {
			return f.call("POST", "/api/v1/node/register?user="+f.user+"&key="+f.arrive(11), nil)
		},
		"POST /api/v1/auth/register": func(f fixture) *answer {
			return f.call("POST", "/api/v1/auth/register", object{"user": f.user, "authId": f.arrive(12)})
		},
		"POST /api/v1/auth/approve": func(f fixture) *answer {
			return f.call("POST", "/api/v1/auth/approve", object{"user": f.user, "authId": f.arrive(13)})
		},
		"POST /api/v1/auth/reject": func(f fixture) *answer {
			return f.call("POST", "/api/v1/auth/reject", object{"authId": f.arrive(14), "reason": "not yet"})
		},
		"POST /api/v1/ssh/approve": func(f fixture) *answer {
			return f.call("POST", "/api/v1/ssh/approve", object{"code": f.session("ana")})
		},
		"POST /api/v1/ssh/reject": func(f fixture) *answer {
			return f.call("POST", "/api/v1/ssh/reject", object{"code": f.session("bob"), "reason": "not now"})
		},
		"POST /api/v1/user": func(f fixture) *answer {
			return f.call("POST", "/api/v1/user", object{"name": "bob", "displayName": "Bob", "email": "bob@example.com", "pictureUrl": "https://example.com/b.png"})
		},
		"PUT /api/v1/user/{id}/account": func(f fixture) *answer {
			return f.call("PUT", "/api/v1/user/"+f.user+"/account", object{"providerId": "https://id.example.com/7"})
		},
		"DELETE /api/v1/user/{id}/account": func(f fixture) *answer {
			return f.call("DELETE", "/api/v1/user/"+f.user+"/account", nil)
		},
		"POST /api/v1/user/{id}/rename/{newName}": func(f fixture) *answer {
			return f.call("POST", "/api/v1/user/"+f.user+"/rename/carol", nil)
		},
		"PUT /api/v1/user/{id}/role": func(f fixture) *answer {
			return f.call("PUT", "/api/v1/user/"+f.user+"/role", object{"role": "operator"})
		},
		"POST /api/v1/user/{id}/suspend": func(f fixture) *answer { return f.call("POST", "/api/v1/user/"+f.user+"/suspend", nil) },
		"POST /api/v1/user/{id}/restore": func(f fixture) *answer { return f.call("POST", "/api/v1/user/"+f.user+"/restore", nil) },
		"POST /api/v1/user/{id}/approve": func(f fixture) *answer { return f.call("POST", "/api/v1/user/"+f.user+"/approve", nil) },
		"DELETE /api/v1/user/{id}":       func(f fixture) *answer { return f.call("DELETE", "/api/v1/user/"+f.user, nil) },
		"POST /api/v1/preauthkey": func(f fixture) *answer {
			return f.call("POST", "/api/v1/preauthkey", object{"user": f.user, "ephemeral": true, "aclTags": []string{"tag:web"}})
		},
		"POST /api/v1/preauthkey/expire": func(f fixture) *answer {
			return f.call("POST", "/api/v1/preauthkey/expire", object{"id": f.preAuth})
		},
		"DELETE /api/v1/preauthkey": func(f fixture) *answer {
			id := f.call("POST", "/api/v1/preauthkey", object{"aclTags": []string{"tag:web"}}).ok()["preAuthKey"].(object)["id"].(string)
			return f.call("DELETE", "/api/v1/preauthkey?id="+id, nil)
		},
		"POST /api/v1/apikey": func(f fixture) *answer {
			return f.call("POST", "/api/v1/apikey", object{"expiration": time.Now().Add(time.Hour)})
		},
		"POST /api/v1/apikey/expire": func(f fixture) *answer {
			return f.call("POST", "/api/v1/apikey/expire", object{"id": f.apiKey})
		},
		"DELETE /api/v1/apikey/{prefix}": func(f fixture) *answer {
			return f.call("DELETE", "/api/v1/apikey/"+f.apiKey, nil)
		},
		"DELETE /api/v1/session/{id}": func(f fixture) *answer {
			v, _ := f.signedIn(1)
			return f.call("DELETE", "/api/v1/session/"+v.ID.String(), nil)
		},
		"DELETE /api/v1/my/session/{id}": func(f fixture) *answer {
			v, _ := f.signedIn(1)
			_, token := f.signedIn(1)
			return f.call("DELETE", "/api/v1/my/session/"+v.ID.String(), nil, token)
		},
		"POST /api/v1/session": func(f fixture) *answer {
			return f.call("POST", "/api/v1/session", f.code(1), noKey)
		},
		"POST /api/v1/session/device": func(f fixture) *answer {
			return f.call("POST", "/api/v1/session/device", object{"challenge": challenge(), "description": "build"}, noKey)
		},
		"POST /api/v1/session/device/token": func(f fixture) *answer {
			d := f.call("POST", "/api/v1/session/device", object{"challenge": challenge()}, noKey).ok()
			return f.call("POST", "/api/v1/session/device/token", object{"deviceCode": d["deviceCode"], "verifier": verifier}, noKey)
		},
		"GET /api/v1/session": func(f fixture) *answer {
			f.signedIn(1)
			return f.call("GET", "/api/v1/session", nil)
		},
		"POST /api/v1/user/{id}/invitation": func(f fixture) *answer {
			f.passkey("holder")
			return f.call("POST", "/api/v1/user/holder/invitation", nil)
		},
		"GET /api/v1/reservation": func(f fixture) *answer {
			f.call("POST", "/api/v1/reservation", object{"name": "listed", "tags": []string{"tag:web"}, "ipv4": "100.64.98.7"}).ok()
			return f.call("GET", "/api/v1/reservation", nil)
		},
		"POST /api/v1/reservation": func(f fixture) *answer { return f.reservation("kept") },
		"DELETE /api/v1/reservation/{id}": func(f fixture) *answer {
			f.call("POST", "/api/v1/reservation", object{"name": "unused", "tags": []string{"tag:web"}}).ok()
			return f.call("DELETE", "/api/v1/reservation/unused", nil)
		},
		"DELETE /api/v1/passkey/{id}": func(f fixture) *answer {
			return f.call("DELETE", "/api/v1/passkey/"+f.passkey("holder"), nil)
		},
		"POST /api/v1/machine": func(f fixture) *answer {
			key := f.call("POST", "/api/v1/preauthkey", object{"user": f.user}).ok()["preAuthKey"].(object)["key"].(string)
			return f.call("POST", "/api/v1/machine", machine(2, key), noKey)
		},
	}
	maps.Copy(calls, webhookExamples())
	maps.Copy(calls, relayExamples())
	for name := range doc.operations() {
		path, isGet := strings.CutPrefix(name, "GET ")
		if _, own := calls[name]; isGet && !own {
			calls[name] = func(f fixture) *answer {
				return f.call("GET", strings.NewReplacer("{nodeId}", f.node, "{id}", f.user).Replace(path), nil)
			}
		}
	}
	return calls
}

// call itself checks that every response conforms to the document.
func TestEveryOperationAnswersAsDocumented(t *testing.T) {
	engines(t, func(t *testing.T, s *service) {
		doc := readDocument(t)
		ops, calls := doc.operations(), examples(doc)
		if diff := cmp.Diff(slices.Sorted(maps.Keys(ops)), slices.Sorted(maps.Keys(calls))); diff != "" {
			t.Fatalf("operations of the document and examples (-document +examples):\n%s", diff)
		}
		f := populated(t, s)
		// In reverse order, deletions come last.
		names := slices.SortedFunc(maps.Keys(ops), func(a, b string) int { return -strings.Compare(a, b) })
		for _, name := range names {
			a := calls[name](f)
			if a.status != http.StatusOK {
				t.Errorf("%s: status %d: %s", name, a.status, a.body)
				continue
			}
			if rev, err := strconv.Atoi(a.header.Get("Mesh-Revision")); err != nil || rev < 1 {
				t.Errorf("%s: Mesh-Revision %q", name, a.header.Get("Mesh-Revision"))
			}
			if a.header.Get("X-Content-Type-Options") != "nosniff" || a.header.Get("Cache-Control") != "no-store" {
				t.Errorf("%s: headers %v", name, a.header)
			}
		}
	})
}

// filled fills in the parameters of a path.
func filled(path string) string {
	return regexp.MustCompile(`\{\w+\}`).ReplaceAllString(strings.ReplaceAll(path, "{newName}", "bob"), "1")
}

func TestFewOperationsNeedNoKey(t *testing.T) {
	s := sqlite(t).listen()
	var open []string
	for path := range readDocument(t).root["paths"].(object) {
		if !strings.HasPrefix(path, "/api/") {
			continue
		}
		for _, method := range []string{"GET", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"} {
			a := s.call(method, filled(path), nil, noKey)
			if a.status != http.StatusUnauthorized {
				open = append(open, method+" "+path)
				continue
			}
			a.fails(401, "Unauthorized", "Unauthorized: bearer token missing", "")
		}
	}
	slices.Sort(open)
	want := []string{"GET /api/v1/docs", "GET /api/v1/openapi.yaml", "GET /api/v1/signin", "POST /api/v1/machine", "POST /api/v1/session", "POST /api/v1/session/device", "POST /api/v1/session/device/token"}
	if diff := cmp.Diff(want, open); diff != "" {
		t.Errorf("answered without a key (-want +got):\n%s", diff)
	}
	for _, path := range []string{
		"/api/v1/user/", "//api/v1/user", "/api//v1/user", "/api/v1/./user", "/api/v1/docs/../user", "/x/../api/v1/user",
		"/api/v1%2Fuser", "/%61pi/v1/user", "/api/v1/nothing", "/api/v1/", "/api/v2/user", "/API/v1/user",
	} {
		if a := s.call("GET", path, nil, noKey); a.status == http.StatusOK {
			t.Errorf("%s is answered without a key: %s", path, a.body)
		}
	}
}

func TestHeadAnswersAsGetWithoutBody(t *testing.T) {
	f := populated(t, sqlite(t))
	route := f.route("10.9.0.0/16")
	for name, op := range examples(readDocument(t)) {
		method, path, _ := strings.Cut(name, " ")
		// Skip responses that may differ between two calls: the digest changes with each
		// heartbeat, presence with time, a profile always, and an API key with its use.
		if method != http.MethodGet || strings.Contains(path, "/debug/") || strings.HasSuffix(path, "/presence") || strings.HasSuffix(path, "/apikey") {
			continue
		}
		get := op(f)
		replace := strings.NewReplacer("{nodeId}", f.node, "{id}", f.user, "{routeId}", route, "{webhookId}", f.ledger.World().Counters.Webhook.String(), "{relayId}", f.ledger.World().Counters.Relay.String(), "{version}", "1",
			"/why", "/why?from=100.64.0.1&to=100.64.0.2&port=22", "/routes/history", "/routes/history?prefix=10.9.0.0/16")
		head := f.call("HEAD", replace.Replace(path), nil)
		if head.status != get.status || len(head.body) != 0 {
			t.Errorf("HEAD %s: status %d with %d bytes, want %d with none", path, head.status, len(head.body), get.status)
		}
		for _, h := range []string{"Content-Type", "Content-Length", "Mesh-Revision"} {
			if head.header.Get(h) != get.header.Get(h) {
				t.Errorf("HEAD %s: %s %q, want %q", path, h, head.header.Get(h), get.header.Get(h))
			}
		}
	}
	for _, path := range []string{"/api/v1/docs", "/api/v1/openapi.yaml"} {
		if a := f.call("HEAD", path, nil, noKey); a.status != http.StatusOK {
			t.Errorf("HEAD %s without a key: %d", path, a.status)
		}
	}
}

func TestUnsetValuesAreSentNotLeftOut(t *testing.T) {
	f := populated(t, sqlite(t))
	user := f.call("GET", "/api/v1/user", nil).ok()["users"].([]any)[0].(object)
	want := object{
		"id": "1", "name": "alice", "createdAt": user["createdAt"], "displayName": "", "email": "", "providerId": "", "provider": "",
		"profilePicUrl": "", "nodeCount": 1.0,
	}
	if diff := cmp.Diff(want, user); diff != "" {
		t.Errorf("user (-want +got):\n%s", diff)
	}
	node := f.call("GET", "/api/v1/node/"+f.node, nil).ok()["node"].(object)
	unset := object{
		"discoKey": "", "createdBy": nil, "os": "", "arch": "", "clientVersion": "", "lastSeen": node["createdAt"], "expiry": nil, "expired": false, "online": false,
		"approvedRoutes": []any{}, "availableRoutes": []any{}, "subnetRoutes": []any{}, "routePreferences": object{}, "tags": []any{}, "forcedTags": []any{}, "validTags": []any{}, "invalidTags": []any{},
	}
	for name, want := range unset {
		if got, ok := node[name]; !ok || !cmp.Equal(got, want) {
			t.Errorf("node.%s is %v, want %v", name, got, want)
		}
	}
	f.call("DELETE", "/api/v1/preauthkey?id="+f.preAuth, nil).ok()
	f.call("DELETE", "/api/v1/user/alice", nil).ok()
	for path, want := range map[string]string{
		"/api/v1/user": `{"users":[]}`, "/api/v1/node": `{"nodes":[]}`, "/api/v1/preauthkey": `{"preAuthKeys":[]}`,
	} {
		if a := f.call("GET", path, nil); string(a.body) != want {
			t.Errorf("%s: %s, want %s", path, a.body, want)
		}
	}
	if a := f.call("DELETE", "/api/v1/apikey/"+f.apiKey, nil); string(a.body) != `{}` {
		t.Errorf("an answer without content: %s", a.body)
	}
}
