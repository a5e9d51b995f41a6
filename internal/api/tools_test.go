package api_test

import (
	"fmt"
	"maps"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/fairlead-mesh/fairlead/internal/identity"
)

// Consoles and providers written for Headscale's API, which has the same paths, must keep
// working. The tables of this file list the calls that they make, in the forms that their
// various versions use, and what they read from the responses.

// toolCall is one call. WORDS in capitals are placeholders for objects created for the
// call; see makeThing.
type toolCall struct {
	operation string // as in the document, with its parameters
	query     string
	body      string
	status    int
	reads     string // fields and their kinds; see kinds
}

// These are the fields that the tools read from each object, with their kinds.
const (
	userMembers       = "id=id name=text createdAt=time displayName=any email=any providerId=any provider=any profilePicUrl=any"
	nodeMembers       = "id=id machineKey=mkey nodeKey=nodekey discoKey=any ipAddresses=texts name=text givenName=text user=owner lastSeen=time? expiry=time? preAuthKey=key? createdAt=time registerMethod=method online=bool approvedRoutes=texts availableRoutes=texts subnetRoutes=texts tags=texts forcedTags=texts validTags=texts invalidTags=texts"
	preAuthKeyMembers = "user=user? id=id reusable=bool ephemeral=bool used=bool expiration=time createdAt=time aclTags=texts"
	apiKeyMembers     = "id=id prefix=masked expiration=time createdAt=time lastSeen=time?"
	routeMembers      = "id=id node=node prefix=text advertised=bool enabled=bool isPrimary=bool createdAt=time updatedAt=time deletedAt=null"
	problemMembers    = "code=number message=text details=list title=text status=number detail=text"
	badPolicyMembers  = "code=number message=hujson details=list title=text status=number detail=located problems=list" // Headplane
)

var (
	decimal   = regexp.MustCompile(`^[0-9]+$`)
	maskedKey = regexp.MustCompile(`^fl[kp]_[A-Za-z0-9]{12}_\*\*\*$`)
	wholeKey  = regexp.MustCompile(`^fl[kp]_[A-Za-z0-9]{12}_[A-Za-z0-9_-]{43}$`)
	method    = regexp.MustCompile(`^REGISTER_METHOD_(UNSPECIFIED|AUTH_KEY|CLI|OIDC)$`)
	mkey      = regexp.MustCompile(`^mkey:[0-9a-f]{64}$`)
	nodekey   = regexp.MustCompile(`^nodekey:[0-9a-f]{64}$`)
	hujson    = regexp.MustCompile(`^parsing HuJSON: line \d+`)
	located   = regexp.MustCompile(`^line \d+`)
	thing     = regexp.MustCompile(`[A-Z][A-Z_]+[A-Z]`)
)

// kinds holds functions that check whether a value is what a tool expects.
func kinds() map[string]func(v any) bool {
	text := func(pattern *regexp.Regexp) func(any) bool {
		return func(v any) bool { s, ok := v.(string); return ok && pattern.MatchString(s) }
	}
	members := func(list string) func(any) bool {
		return func(v any) bool { return len(unread(v, list)) == 0 }
	}
	isTime := func(v any) bool {
		s, _ := v.(string)
		at, err := time.Parse(time.RFC3339, s)
		return err == nil && at.Year() > 2000
	}
	known := map[string]func(any) bool{
		"id": text(decimal), "masked": text(maskedKey), "secret": text(wholeKey), "method": text(method), "mkey": text(mkey), "nodekey": text(nodekey),
		"hujson": text(hujson), "located": text(located),
		"any":    func(v any) bool { _, ok := v.(string); return ok },
		"text":   func(v any) bool { s, ok := v.(string); return ok && s != "" },
		"bool":   func(v any) bool { _, ok := v.(bool); return ok },
		"true":   func(v any) bool { return v == true },
		"number": func(v any) bool { _, ok := v.(float64); return ok },
		"null":   func(v any) bool { return v == nil },
		"time":   isTime,
		"list":   func(v any) bool { _, ok := v.([]any); return ok },
		"texts": func(v any) bool {
			list, ok := v.([]any)
			return ok && !slices.ContainsFunc(list, func(item any) bool { _, ok := item.(string); return !ok })
		},
		"user": members(userMembers), "owner": members(strings.Replace(userMembers, "createdAt=time", "createdAt=time?", 1)), // nodes may belong to tags
		"key": members(preAuthKeyMembers + " key=masked"), "newKey": members(preAuthKeyMembers + " key=secret"),
		"apiKey": members(apiKeyMembers), "problem": members(problemMembers),
	}
	known["node"] = members(nodeMembers)
	known["route"] = members(routeMembers)
	return known
}

// unread checks the fields of v against members, a list of "name=kind", and returns what
// is wrong. "name[]=kind" means a list with at least one item.
func unread(v any, members string) (wrong []string) {
	o, ok := v.(object)
	if !ok {
		return []string{"no object"}
	}
	all := kinds()
	for _, m := range strings.Fields(members) {
		name, kind, _ := strings.Cut(m, "=")
		name, isList := strings.CutSuffix(name, "[]")
		value, present := o[name]
		bare, optional := strings.CutSuffix(kind, "?")
		switch {
		case !present:
			wrong = append(wrong, name+" is missing")
		case isList:
			list, _ := value.([]any)
			if len(list) == 0 || slices.ContainsFunc(list, func(item any) bool { return !all[bare](item) }) {
				wrong = append(wrong, fmt.Sprintf("%s is not a list of %s: %v", name, bare, value))
			}
		case optional && value == nil:
		case !all[bare](value):
			wrong = append(wrong, fmt.Sprintf("%s is no %s: %v", name, bare, value))
		}
	}
	return wrong
}

// calls returns all calls that the tools make. A comment names the tools or versions that
// send a form; forms without a comment are sent by all.
//
// long: it is the table
func calls() []toolCall {
	const nodes, node, user, key, routes = "nodes[]=node", "node=node", "user=user", "preAuthKey=newKey", "routes[]=route"
	return []toolCall{
		{"GET /health", "", "", 200, "status=text"},
		{"GET /ready", "", "", 200, "status=text"},
		{"GET /version", "", "", 200, "version=text commit=any buildTime=any"},
		{"GET /api/v1/health", "", "", 200, "databaseConnectivity=true"}, // Terraform

		{"GET /api/v1/user", "", "", 200, "users[]=user"},
		{"GET /api/v1/user", "name=USERNAME", "", 200, "users[]=user"},
		{"GET /api/v1/user", "id=USER", "", 200, "users[]=user"},
		{"GET /api/v1/user", "email=nobody@example.com", "", 200, "users=list"},
		{"POST /api/v1/user", "", `{"name":"FRESH"}`, 200, user},
		{"POST /api/v1/user", "", `{"name":"FRESH","displayName":"Ann","email":"FRESH@example.com","pictureUrl":"https://example.com/a.png"}`, 200, user}, // Headplane
		{"POST /api/v1/user", "", `{"name":"FRESH","display_name":"Ann","picture_url":""}`, 200, user},
		{"POST /api/v1/user", "", `{"name":"USERNAME"}`, 409, problemMembers},
		{"GET /api/v1/user/USERNAME", "", "", 200, user}, // up to 0.23
		{"DELETE /api/v1/user/USER", "", "", 200, ""},
		{"DELETE /api/v1/user/USERNAME", "", "", 200, ""}, // up to 0.23
		{"DELETE /api/v1/user/999999", "", "", 404, problemMembers},
		{"POST /api/v1/user/USER/rename/FRESH", "", "", 200, user},
		{"POST /api/v1/user/USERNAME/rename/FRESH", "", "", 200, user}, // up to 0.23

		{"GET /api/v1/preauthkey", "", "", 200, "preAuthKeys[]=key"},
		{"GET /api/v1/preauthkey", "user=OWNER_OF_KEY", "", 200, "preAuthKeys[]=key"}, // headscale-admin
		{"GET /api/v1/preauthkey", "user=USER", "", 200, "preAuthKeys=list"},
		{"POST /api/v1/preauthkey", "", `{"user":"USERNAME","reusable":true,"ephemeral":false,"expiration":"LATER","aclTags":[]}`, 200, key}, // up to 0.25
		{"POST /api/v1/preauthkey", "", `{"user":"USER","reusable":false,"ephemeral":true,"expiration":"LATER","aclTags":["tag:web"]}`, 200, key},
		{"POST /api/v1/preauthkey", "", `{"user":USER,"expiration":"LATER"}`, 200, key},
		{"POST /api/v1/preauthkey", "", `{"user":"USER","reusable":true,"ephemeral":false,"expiration":null,"aclTags":null}`, 200, key}, // Headplane
		{"POST /api/v1/preauthkey", "", `{"user":"USER","acl_tags":["tag:web"],"expiration":""}`, 200, key},
		{"POST /api/v1/preauthkey", "", `{"reusable":true,"expiration":"LATER","aclTags":["tag:web"]}`, 200, key},                               // from 0.28
		{"POST /api/v1/preauthkey", "", `{"aclTags":["tag:web"],"ephemeral":false,"expiration":"LATER","reusable":false,"user":"0"}`, 200, key}, // the headscale CLI from 0.30, without --user
		{"GET /api/v1/preauthkey", "user=9999", "", 200, "preAuthKeys=list"},
		{"POST /api/v1/preauthkey", "", `{"user":"USER","expiration":"2001-01-01T00:00:00Z"}`, 400, problemMembers}, // already expired
		{"POST /api/v1/preauthkey/expire", "", `{"user":"OWNER_OF_KEY","key":"WHOLE_KEY"}`, 200, ""},                // up to 0.25
		{"POST /api/v1/preauthkey/expire", "", `{"user":"OWNER_OF_KEY","key":"MASKED_KEY"}`, 200, ""},               // as shown in lists
		{"POST /api/v1/preauthkey/expire", "", `{"user":OWNER_ID,"key":"MASKED_KEY"}`, 200, ""},                     // 0.26, 0.27
		{"POST /api/v1/preauthkey/expire", "", `{"id":"KEY_ID"}`, 200, ""},                                          // from 0.28
		{"POST /api/v1/preauthkey/expire", "", `{"id":KEY_ID}`, 200, ""},                                            //
		{"POST /api/v1/preauthkey/expire", "", `{"id":"999999"}`, 404, problemMembers},                              // an unknown ID must not report success
		{"DELETE /api/v1/preauthkey", "id=KEY_ID", "", 200, ""},                                                     // Terraform
		{"DELETE /api/v1/preauthkey", "id=999999", "", 404, problemMembers},                                         //

		{"GET /api/v1/node", "", "", 200, nodes},
		{"GET /api/v1/node", "user=OWNER_OF_NODE", "", 200, nodes},
		{"GET /api/v1/node", "user=USER", "", 200, "nodes=list"},
		{"GET /api/v1/node/NODE", "", "", 200, node},
		{"GET /api/v1/node/999999", "", "", 404, problemMembers},
		{"DELETE /api/v1/node/NODE", "", "", 200, ""},
		{"POST /api/v1/node/NODE/expire", "", "", 200, "node=node"},
		{"POST /api/v1/node/NODE/expire", "", "{}", 200, node},
		{"POST /api/v1/node/NODE/expire", "expiry=LATER", "", 200, node}, // from 0.27
		{"POST /api/v1/node/NODE/expire", "disableExpiry=true", "", 200, node},
		{"POST /api/v1/node/NODE/expire", "", `{"expiry":"LATER"}`, 200, node},   // from 0.30
		{"POST /api/v1/node/NODE/expire", "", `{"expiry":"EARLIER"}`, 200, node}, // the headscale CLI expires "now" by its own clock
		{"POST /api/v1/node/NODE/expire", "", `{"expiry":null,"disableExpiry":true}`, 200, node},
		{"POST /api/v1/node/NODE/expire", "", `{"expiry":"LATER","disableExpiry":true}`, 400, problemMembers},
		{"POST /api/v1/node/NODE/rename/FRESH", "", "", 200, node},
		{"POST /api/v1/node/NODE/rename/not%20a%20name", "", "", 400, problemMembers},
		{"POST /api/v1/node/NODE/tags", "", `{"tags":["tag:web"]}`, 200, node},
		{"POST /api/v1/node/NODE/tags", "", `{"tags":[]}`, 400, problemMembers},
		{"POST /api/v1/node/NODE/tags", "", `{"tags":["web"]}`, 400, problemMembers},
		{"POST /api/v1/node/NODE/approve_routes", "", `{"routes":["10.1.0.0/16"]}`, 200, node},
		{"POST /api/v1/node/NODE/approve_routes", "", `{"routes":["0.0.0.0/0"]}`, 200, node},
		{"POST /api/v1/node/NODE/approve_routes", "", `{"routes":["10.1.0.5/16"]}`, 200, node}, // host bits
		{"POST /api/v1/node/NODE/approve_routes", "", `{"routes":[]}`, 200, node},
		{"POST /api/v1/node/NODE/approve_routes", "", `{"routes":null}`, 200, node}, // HeadControl
		{"POST /api/v1/node/NODE/approve_routes", "", `{}`, 200, node},
		{"POST /api/v1/node/backfillips", "confirmed=true", "", 200, "changes=list"}, // headscale-client-go, jamebal, the headscale CLI
		{"POST /api/v1/node/backfillips", "confirmed=true", "{}", 200, "changes=list"},
		{"POST /api/v1/node/backfillips", "", "", 400, problemMembers},
		{"POST /api/v1/node/NODE/user", "user=USERNAME", "", 200, node},       // up to 0.23
		{"POST /api/v1/node/NODE/user", "", `{"user":"USERNAME"}`, 200, node}, // headscale-admin, headscale-ui
		{"POST /api/v1/node/NODE/user", "", `{"user":USER}`, 200, node},       // 0.26, 0.27
		{"POST /api/v1/node/NODE/user", "", `{"user":"nobody"}`, 404, problemMembers},
		{"POST /api/v1/node/TAGGED_NODE/user", "", `{"user":USER}`, 409, problemMembers},
		{"GET /api/v1/node/NODE/routes", "", "", 200, routes}, // headscale-admin
		{"POST /api/v1/node/register", "user=USERNAME&key=LOGIN", "", 200, node},
		{"POST /api/v1/node/register", "", `{"user":"USER","key":"LOGIN"}`, 200, node},
		{"POST /api/v1/node/register", "user=USERNAME&key=LOGIN", `{"user":"USERNAME","key":"LOGIN"}`, 200, node},         // Headplane
		{"POST /api/v1/node/register", "user=USERNAME&key=LONG_CODE", `{"user":"USERNAME","key":"LONG_CODE"}`, 200, node}, // Headplane accepts nothing else
		{"POST /api/v1/node/register", "user=USERNAME&key=234567892345678923456789", "", 404, problemMembers},
		{"POST /api/v1/node/register", "user=USERNAME&key=garbage", "", 400, problemMembers},

		{"GET /api/v1/routes", "", "", 200, routes}, // headscale-admin; also all of the following
		{"POST /api/v1/routes/ROUTE/enable", "", "", 200, ""},
		{"POST /api/v1/routes/ROUTE/disable", "", "", 200, ""},
		{"POST /api/v1/routes/999999/enable", "", "", 404, problemMembers},
		{"DELETE /api/v1/routes/OLD_ROUTE", "", "", 200, ""},
		{"DELETE /api/v1/routes/ROUTE", "", "", 409, problemMembers}, // still advertised

		{"POST /api/v1/auth/register", "", `{"user":"USERNAME","authId":"LOGIN"}`, 200, node},
		{"POST /api/v1/auth/register", "", `{"user":"USERNAME","auth_id":"LOGIN"}`, 200, node},
		{"POST /api/v1/auth/approve", "", `{"user":USER,"authId":"LOGIN"}`, 200, node},
		{"POST /api/v1/auth/reject", "", `{"authId":"LOGIN"}`, 200, ""},
		{"POST /api/v1/auth/approve", "", `{"user":USER,"authId":"LONG_CODE"}`, 200, node},
		{"POST /api/v1/auth/reject", "", `{"authId":"garbage"}`, 400, problemMembers},
		{"POST /api/v1/auth/reject", "", `{"authId":"2A3B-4C5D"}`, 404, problemMembers},

		{"GET /api/v1/apikey", "", "", 200, "apiKeys[]=apiKey"},
		{"POST /api/v1/apikey", "", `{"expiration":"LATER"}`, 200, "apiKey=secret"},
		{"POST /api/v1/apikey", "", `{"expiration":null}`, 200, "apiKey=secret"},
		{"POST /api/v1/apikey/expire", "", `{"prefix":"API_KEY_PREFIX"}`, 200, ""},
		{"POST /api/v1/apikey/expire", "", `{"prefix":"API_KEY_MASKED"}`, 200, ""}, // from 0.28
		{"POST /api/v1/apikey/expire", "", `{"id":"API_KEY_ID"}`, 200, ""},
		{"POST /api/v1/apikey/expire", "", `{"id":API_KEY_ID}`, 200, ""},
		{"POST /api/v1/apikey/expire", "", `{"id":"API_KEY_ID","prefix":"API_KEY_PREFIX"}`, 400, problemMembers},
		{"DELETE /api/v1/apikey/API_KEY_PREFIX", "", "", 200, ""},
		{"DELETE /api/v1/apikey/API_KEY_MASKED", "", "", 200, ""},
		{"DELETE /api/v1/apikey/-", "id=API_KEY_ID", "", 200, ""}, // Terraform
		{"DELETE /api/v1/apikey/nobodys", "", "", 404, problemMembers},

		{"PUT /api/v1/policy", "", `{"policy":"POLICY"}`, 200, "policy=text updatedAt=time"},
		{"PUT /api/v1/policy", "", `{"policy":"{"}`, 400, badPolicyMembers},
		{"PUT /api/v1/policy", "", `{"policy":"{\"acls\": [{\"action\": \"accept\", \"src\": [\"group:none\"], \"dst\": [\"*:*\"]}]}"}`, 400, badPolicyMembers},
		{"GET /api/v1/policy", "", "", 200, "policy=text updatedAt=time"},
		{"POST /api/v1/preauthkey", "", `{"expiration":"LATER","aclTags":["tag:undeclared"]}`, 200, key + " warnings=list"},  // Headplane, Terraform
		{"PUT /api/v1/policy", "", `{"policy":"{\"acls\": [{\"action\": \"accept\"}]}"}`, 200, "policy=text updatedAt=time"}, // Terraform
		{"PUT /api/v1/policy", "", `{"policy":"{\"tagOwners\": {\"tag:terra_form\": [], \"tag:terraform:tests\": []}, \"acls\": []}"}`, 200, "policy=text updatedAt=time"},
		{"POST /api/v1/preauthkey", "", `{"user":"USER","expiration":"LATER","aclTags":["tag:terra_form","tag:terraform:tests"]}`, 200, key},
		{"POST /api/v1/node/NODE/tags", "", `{"tags":["tag:terraform:tests"]}`, 200, node},
		{"PUT /api/v1/policy", "", `{}`, 200, "policy=any updatedAt=time"}, // sent by terraform destroy
		{"GET /api/v1/policy", "", "", 404, problemMembers},
		{"PUT /api/v1/policy", "", `{"policy":"POLICY"}`, 200, "policy=text updatedAt=time"},
		{"PUT /api/v1/policy", "", `{"policy":""}`, 200, "policy=any updatedAt=time"},
		{"POST /api/v1/policy/check", "", `{"policy":"POLICY"}`, 200, ""}, // from 0.29
		{"POST /api/v1/policy/check", "", `{"policy":"{"}`, 400, badPolicyMembers},
	}
}

// workshop creates the objects that calls refer to, new ones for each call.
type workshop struct {
	*service
	made int
	// things holds the objects that the current call refers to, by placeholder.
	things map[string]string
}

func (w *workshop) fresh() string {
	w.made++
	return fmt.Sprintf("thing-%d", w.made)
}

// need returns an object, and creates it unless the current call already has it.
func (w *workshop) need(name string) string {
	w.t.Helper()
	if w.things[name] == "" {
		w.makeThing(name)
	}
	return w.things[name]
}

func (w *workshop) makeThing(name string) {
	w.t.Helper()
	switch name {
	case "FRESH":
		w.things[name] = w.fresh()
	case "LATER":
		w.things[name] = time.Now().Add(24 * time.Hour).UTC().Format(time.RFC3339)
	case "EARLIER":
		w.things[name] = time.Now().Add(-time.Second).UTC().Format(time.RFC3339Nano)
	case "POLICY":
		w.things[name] = `{\"tagOwners\": {\"tag:web\": []}, \"acls\": [{\"action\": \"accept\", \"src\": [\"*\"], \"dst\": [\"*:*\"]}]} /* ` + w.fresh() + ` */`
	case "USER", "USERNAME":
		w.things["USERNAME"] = w.fresh()
		w.things["USER"] = w.newUser(w.things["USERNAME"])
	case "WHOLE_KEY", "MASKED_KEY", "KEY_ID", "OWNER_OF_KEY", "OWNER_ID":
		w.things["OWNER_OF_KEY"] = w.fresh()
		w.things["OWNER_ID"] = w.newUser(w.things["OWNER_OF_KEY"])
		key := w.call("POST", "/api/v1/preauthkey", object{"user": w.things["OWNER_ID"]}).ok()["preAuthKey"].(object)
		w.things["KEY_ID"], w.things["WHOLE_KEY"] = key["id"].(string), key["key"].(string)
		w.things["MASKED_KEY"] = w.things["WHOLE_KEY"][:17] + "***"
	case "API_KEY_ID", "API_KEY_PREFIX", "API_KEY_MASKED":
		key := w.call("POST", "/api/v1/apikey", nil).ok()
		w.things["API_KEY_ID"], w.things["API_KEY_MASKED"] = key["id"].(string), key["prefix"].(string)
		w.things["API_KEY_PREFIX"] = strings.TrimSuffix(strings.TrimPrefix(key["prefix"].(string), "flk_"), "_***")
	case "LOGIN":
		w.made++
		w.things[name] = w.arrive(uint64(1_000 + w.made))
	case "LONG_CODE":
		w.things[name] = identity.LongLoginCode(w.need("LOGIN"))
	case "NODE", "OWNER_OF_NODE":
		w.things["OWNER_OF_NODE"] = w.fresh()
		w.newUser(w.things["OWNER_OF_NODE"])
		w.things["NODE"] = w.node(object{"user": w.things["OWNER_OF_NODE"]})
	case "TAGGED_NODE":
		w.things[name] = w.node(object{"aclTags": []string{"tag:web"}})
	case "ROUTE", "OLD_ROUTE":
		node := w.need("NODE")
		w.call("POST", "/api/v1/node/"+node+"/approve_routes", object{"routes": []string{"10.2.0.0/16"}}).ok() // not advertised
		for _, r := range w.call("GET", "/api/v1/node/"+node+"/routes", nil).ok()["routes"].([]any) {
			as := map[bool]string{true: "ROUTE", false: "OLD_ROUTE"}[r.(object)["advertised"].(bool)]
			w.things[as] = r.(object)["id"].(string)
		}
	default:
		w.t.Fatalf("nobody knows what %s is", name)
	}
}

// node registers a node that advertises routes.
func (w *workshop) node(key object) string {
	w.t.Helper()
	w.made++
	m := machine(uint64(w.made), w.preAuthKey(key))
	m["routableIPs"] = []string{"10.1.0.0/16", "0.0.0.0/0", "::/0"}
	return w.register(m).ok()["node"].(object)["id"].(string)
}

// operationOf returns the documented operation for a path with its parameters filled in.
func operationOf(operation string, documented []string) string {
	method, path, _ := strings.Cut(operation, " ")
	parts := strings.Split(path, "/")
	best := ""
	for _, name := range documented {
		m, template, _ := strings.Cut(name, " ")
		want := strings.Split(template, "/")
		if m != method || len(want) != len(parts) {
			continue
		}
		fits := true
		for i := range want {
			fits = fits && (want[i] == parts[i] || strings.HasPrefix(want[i], "{"))
		}
		if fits && (best == "" || strings.Count(template, "{") < strings.Count(best, "{")) {
			best = name
		}
	}
	return best
}

// errorTypes returns the media types of errors by the request's Accept header.
func errorTypes() map[string]string {
	const problem, plain = "application/problem+json", "application/json"
	return map[string]string{
		"":                                  problem, // HeadControl, the headscale CLI from 0.30, our own clients
		"*/*":                               problem, // curl
		"application/json":                  plain,   // Terraform, headscale-admin
		"application/json, text/plain, */*": plain,   // consoles based on axios
		"text/html, Application/JSON;q=0.9": plain,
		"application/problem+json, application/json": problem,
		"application/json, application/problem+json": problem,
		"application/json;q=0, */*":                  problem,
		"application/jsonl":                          problem,
		";;,":                                        problem,
	}
}

func TestExistingToolsKeepWorking(t *testing.T) {
	s := sqlite(t)
	w := &workshop{service: s.listen()}
	for _, c := range calls() {
		t.Run(strings.Join([]string{c.operation, c.query, c.body}, " "), func(t *testing.T) {
			defer func(whole testing.TB) { s.t = whole }(s.t)
			s.t, w.things = t, map[string]string{}
			if strings.HasPrefix(c.operation, "GET") {
				w.need("NODE")
				w.need("KEY_ID")
			}
			fill := func(text string) string { return thing.ReplaceAllStringFunc(text, w.need) }
			method, path, _ := strings.Cut(c.operation, " ")
			path = fill(path)
			if c.query != "" {
				path += "?" + fill(c.query)
			}
			var body any
			if c.body != "" {
				body = fill(c.body)
			}
			accepts := []string{""}
			if c.status >= http.StatusBadRequest { // nothing was changed, so send it again
				accepts = append(accepts, "application/json") // TestToolsAreToldThatTheirKeyIsWrong covers all variants
			}
			for _, accept := range accepts {
				a := s.call(method, path, body, "Accept: "+accept)
				if a.status != c.status {
					t.Fatalf("status %d, want %d: %s", a.status, c.status, a.body)
				}
				if got, want := a.header.Get("Content-Type"), errorTypes()[accept]; c.status >= http.StatusBadRequest && got != want {
					t.Errorf("Accept %q: the error is %s, want %s", accept, got, want)
				}
				if wrong := unread(a.decoded(), c.reads); len(wrong) > 0 {
					t.Errorf("%s\n%s", strings.Join(wrong, "\n"), a.body)
				}
			}
		})
	}
}

func TestDocumentHasWhatToolsCall(t *testing.T) {
	documented := slices.Sorted(maps.Keys(readDocument(t).operations()))
	for _, c := range calls() {
		if operationOf(c.operation, documented) == "" {
			t.Errorf("%s is not in the document", c.operation)
		}
	}
}

// Tools recognise a wrong key by the word Unauthorized, either as the whole body or as
// the title of the problem.
func TestToolsAreToldThatTheirKeyIsWrong(t *testing.T) {
	s := sqlite(t)
	told := func(header, path, accept, mediaType string) {
		t.Helper()
		a := s.call("GET", path, nil, header, "Accept: "+accept)
		if a.status != http.StatusUnauthorized || a.header.Get("WWW-Authenticate") != "Bearer" {
			t.Errorf("Accept %q: %d %v", accept, a.status, a.header)
		}
		if mediaType == "application/json" {
			if string(a.body) != "Unauthorized" || a.header.Get("Content-Type") != "text/plain; charset=utf-8" {
				t.Errorf("Accept %q: %s, %q", accept, a.header.Get("Content-Type"), a.body)
			}
			return
		}
		body := a.decoded()
		if a.header.Get("Content-Type") != mediaType || body["title"] != "Unauthorized" || body["code"] != 16.0 || len(unread(body, problemMembers)) > 0 {
			t.Errorf("Accept %q: %v %s", accept, a.header, a.body)
		}
	}
	for accept, mediaType := range errorTypes() {
		told(noKey, "/api/v1/user", accept, mediaType)
	}
	for _, header := range []string{noKey, "Authorization: Bearer abcdefg.hijklmnop", "Authorization: Bearer flk_aaaaaaaaaaaa_b"} {
		for _, path := range []string{"/api/v1/user", "/api/v1/apikey", "/api/v1/node", "/api/v1/health"} {
			told(header, path, "", "application/problem+json")
			told(header, path, "application/json", "application/json")
		}
	}
	if a := s.call("GET", "/api/v1/user", nil, noKey); !strings.HasPrefix(a.decoded()["message"].(string), "Unauthorized") {
		t.Errorf("without a key: %s", a.body)
	}
}

// The specification fixes the text of this rejection, and no existing tool calls the
// operation, so the body is the same whatever the request accepts.
func TestRefusedEnrolmentSaysWhyAlsoToToolsThatReadOnlyJSON(t *testing.T) {
	s := sqlite(t)
	a := s.call("POST", "/api/v1/machine", machine(1, "flp_aaaaaaaaaaaa_b"), noKey, "Accept: application/json")
	if body := a.decoded(); a.status != http.StatusUnauthorized || a.header.Get("Content-Type") != "application/json" || body["title"] != "Node registration rejected" {
		t.Errorf("%d %s: %s", a.status, a.header.Get("Content-Type"), a.body)
	}
}

// A console uses the masked form to find the key that a person signed in with.
func TestToolsFindTheirOwnKeyInTheList(t *testing.T) {
	s := sqlite(t)
	for _, k := range s.call("GET", "/api/v1/apikey", nil).ok()["apiKeys"].([]any) {
		prefix, _ := strings.CutSuffix(k.(object)["prefix"].(string), "***")
		if strings.HasPrefix(s.key, prefix) {
			return
		}
	}
	t.Error("no listed prefix begins the key")
}

func TestWhatToolsWouldNotUnderstandIsFound(t *testing.T) {
	for members, want := range map[string]int{
		"id=id name=text gone=null list=texts users[]=user?": 1, "id=number": 1, "name=id": 1, "missing=text": 1, "empty=text": 1, "empty=any gone=text?": 0, "gone=text": 1, "name[]=text": 1,
	} {
		body := object{"id": "1", "name": "a", "empty": "", "gone": nil, "list": []any{"a"}, "users": []any{object{"id": 1.0}}}
		if wrong := unread(body, members); len(wrong) != want {
			t.Errorf("%s: %v", members, wrong)
		}
	}
}
