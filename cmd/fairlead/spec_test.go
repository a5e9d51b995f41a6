package main_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/fairlead-mesh/fairlead/internal/test/meshtest"
)

// The tables of the specification, with one test per row, on both engines. The IDs of the
// rows are those of internal/test/speccheck.

// world is a running server for the rows.
type world struct {
	t *testing.T
	p *process
	s settings
	// made counts created objects, to derive unused names.
	made int
}

// row proves one statement of the specification.
type row func(w *world)

// TestSpecification proves the tables of endpoints, commands, states, errors, fields, log
// lines and metrics.
func TestSpecification(t *testing.T) {
	t.Parallel()
	worlds := map[string]*world{"sqlite": {s: onSQLite(t)}, "postgres": {s: onPostgres(t, pg)}}
	for _, w := range worlds {
		w.p = serve(t, w.s)
	}
	for _, table := range []map[string]row{endpoints(), commands(), states(), refusals(), fields(), logLines(), metricNames()} {
		for _, id := range slices.Sorted(maps.Keys(table)) {
			t.Run(id, func(t *testing.T) {
				for _, engine := range []string{"sqlite", "postgres"} {
					t.Run(engine, func(t *testing.T) {
						w := worlds[engine]
						w.t = t
						table[id](w)
					})
				}
			})
		}
	}
}

// name returns an unused name.
func (w *world) name(kind string) string {
	w.made++
	return fmt.Sprintf("%s-%d", kind, w.made)
}

// run returns the standard output of a command that must succeed.
func (w *world) run(line string) string {
	w.t.Helper()
	return mustCommand(w.t, w.s, strings.Split(line, " ")...)
}

// read returns the decoded JSON output of a command.
func (w *world) read(line string) any {
	w.t.Helper()
	return parsed(w.t, w.run(line+" --output json"))
}

func parsed(t *testing.T, text string) (v any) {
	t.Helper()
	if err := json.Unmarshal([]byte(text), &v); err != nil {
		t.Fatalf("%v: %s", err, text)
	}
	return v
}

// get returns the API's response over the socket.
func (w *world) get(path string) map[string]any {
	w.t.Helper()
	return parsed(w.t, w.p.client("").must(w.t, 200, "GET", path, "")).(map[string]any)
}

func (w *world) user() string {
	w.t.Helper()
	name := w.name("user")
	w.run("users create " + name)
	return name
}

// preAuthKey creates a pre-auth key with these flags, for a new user.
func (w *world) preAuthKey(flags string) string {
	w.t.Helper()
	return strings.TrimSpace(w.run(strings.TrimSpace("preauthkeys create --user " + w.user() + " " + flags)))
}

// registers sends the registration of a new machine and returns the response.
func (w *world) registers(key string) (status int, body string) {
	w.t.Helper()
	status, body, err := w.p.client("").do("POST", "/api/v1/machine", registration(key, w.name("host")))
	if err != nil {
		w.t.Fatal(err)
	}
	return status, body
}

// node registers a node that advertises routes and returns its ID.
func (w *world) node(routes ...string) string {
	w.t.Helper()
	list, err := json.Marshal(append([]string{}, routes...))
	if err != nil {
		w.t.Fatal(err)
	}
	body := strings.Replace(registration(w.preAuthKey(""), w.name("host")), `"os"`, `"routableIPs": `+string(list)+`, "os"`, 1)
	answer := parsed(w.t, w.p.client("").must(w.t, 200, "POST", "/api/v1/machine", body))
	return answer.(map[string]any)["node"].(map[string]any)["id"].(string)
}

// onlineNode returns the ID of a node that stays connected until the row ends.
func (w *world) onlineNode() string {
	w.t.Helper()
	n := meshtest.NewCrowd(w.t, "http://"+w.p.api).Node(w.name("host"))
	if err := n.Register(w.t.Context(), w.preAuthKey("")); err != nil {
		w.t.Fatal(err)
	}
	n.Connect()
	if _, err := n.Await(w.t.Context(), func(v *meshtest.View) bool { return v.Self.ID != 0 }); err != nil {
		w.t.Fatal(err)
	}
	id := fmt.Sprint(int64(n.ID()))
	w.t.Cleanup(func() {
		n.Disconnect()
		w.p.client("").must(w.t, 200, "DELETE", "/api/v1/node/"+id, "")
	})
	eventually(w.t, func() error {
		if w.nodeNow(id)["online"] != true {
			return errors.New("the node is not online")
		}
		return nil
	})
	return id
}

func (w *world) nodeNow(id string) map[string]any {
	w.t.Helper()
	return w.get("/api/v1/node/" + id)["node"].(map[string]any)
}

// route returns the only route of a new node that advertises it.
func (w *world) route() (id, prefix string) {
	w.t.Helper()
	w.made++
	prefix = fmt.Sprintf("10.%d.0.0/16", w.made%250)
	return w.routesOf(w.node(prefix))[0]["id"].(string), prefix
}

func (w *world) routesOf(node string) (routes []map[string]any) {
	w.t.Helper()
	for _, r := range w.get("/api/v1/node/" + node + "/routes")["routes"].([]any) {
		routes = append(routes, r.(map[string]any))
	}
	return routes
}

func (w *world) enabled(route string) bool {
	w.t.Helper()
	for _, r := range w.get("/api/v1/routes")["routes"].([]any) {
		if r.(map[string]any)["id"] == route {
			return r.(map[string]any)["enabled"].(bool)
		}
	}
	w.t.Fatalf("there is no route %s", route)
	return false
}

// demand fails the row unless a condition holds.
func (w *world) demand(holds bool, format string, args ...any) {
	w.t.Helper()
	if !holds {
		w.t.Errorf(format, args...)
	}
}

// logged waits until the log has a line with this message and these values.
func (w *world) logged(phrase string, values ...string) {
	w.t.Helper()
	eventually(w.t, func() error {
		for _, r := range w.p.log.records() {
			line := fmt.Sprint(r)
			if r["msg"] == phrase && !slices.ContainsFunc(values, func(v string) bool { return !strings.Contains(line, v) }) {
				return nil
			}
		}
		return errors.New("the log has no " + phrase)
	})
}

func endpoints() map[string]row {
	return map[string]row{
		"endpoint-health": func(w *world) {
			stranger := w.p.client("x")
			stranger.key = ""
			body := parsed(w.t, stranger.must(w.t, 200, "GET", "/health", "")).(map[string]any)
			w.demand(body["status"] == "pass", "%v", body)
		},
		"endpoint-user": func(w *world) {
			name := w.user()
			answer := w.p.client(newKey(w.t, w.s)).must(w.t, 200, "GET", "/api/v1/user", "")
			says(w.t, answer, `"users":[{`, `"name":"`+name+`"`)
		},
		"endpoint-machine": func(w *world) {
			status, body := w.registers(w.preAuthKey(""))
			w.demand(status == 200, "status %d: %s", status, body)
		},
		"endpoint-metrics": func(w *world) {
			says(w.t, w.p.metricsText(w.t), "# HELP mesh_nodes_total ", "# TYPE mesh_nodes_total gauge")
		},
		"endpoint-other-resources": func(w *world) {
			client := w.p.client(newKey(w.t, w.s))
			for _, path := range []string{"node", "routes", "preauthkey", "apikey"} {
				client.must(w.t, 200, "GET", "/api/v1/"+path, "")
			}
			client.must(w.t, 200, "PUT", "/api/v1/policy", `{"policy": "{\"tagOwners\": {\"tag:web\": []}, \"acls\": [{\"action\": \"accept\", \"src\": [\"*\"], \"dst\": [\"*:*\"]}]}"}`)
			client.must(w.t, 200, "GET", "/api/v1/policy", "")
		},
	}
}

var (
	newPreAuthKey = regexp.MustCompile(`^flp_[A-Za-z0-9]{12}_[A-Za-z0-9_-]{43}\n$`)
	newAPIKey     = regexp.MustCompile(`^flk_[A-Za-z0-9]{12}_[A-Za-z0-9_-]{43}\n$`)
)

// long: it has a row for each command
func commands() map[string]row {
	return map[string]row{
		"command-health": func(w *world) {
			says(w.t, w.run("health"), "pass")
			elsewhere := command(w.t, w.s.with("unix_socket", "/nowhere"), "health")
			w.demand(elsewhere.status == 1, "without a service: %+v", elsewhere)
		},
		"command-nodes-list": func(w *world) {
			name := w.nodeNow(w.node())["givenName"].(string)
			says(w.t, w.run("nodes list"), name)
		},
		"command-nodes-delete": func(w *world) {
			id := w.node()
			w.run("nodes delete --force --identifier " + id)
			w.p.client("").must(w.t, 404, "GET", "/api/v1/node/"+id, "")
		},
		"command-nodes-expire-all": func(w *world) {
			id := w.node()
			w.run("nodes expire --all --force")
			w.demand(w.nodeNow(id)["expired"] == true, "the node is not expired")
		},
		"command-nodes-expire-all-offline": func(w *world) {
			away, here := w.node(), w.onlineNode()
			w.run("nodes expire --all-offline --force")
			w.demand(w.nodeNow(away)["expired"] == true, "the node is not expired")
			w.demand(w.nodeNow(here)["expired"] == false, "a node that is online is expired")
			both := command(w.t, w.s, "nodes", "expire", "--all", "--all-offline", "--force")
			w.demand(both.status == 2, "both flags: %+v", both)
		},
		"command-users-create": func(w *world) {
			name := w.name("user")
			w.run("users create " + name)
			w.demand(len(w.get("/api/v1/user?name=" + name)["users"].([]any)) == 1, "there is no %s", name)
		},
		"command-users-list": func(w *world) {
			name := w.user()
			says(w.t, w.run("users list"), name)
		},
		"command-preauthkeys-create": func(w *world) {
			user := w.user()
			key := w.run("preauthkeys create --user " + user + " --reusable --ephemeral --expiration 24h --tags tag:web")
			w.demand(newPreAuthKey.MatchString(key), "printed %q", key)
			list := w.read("preauthkeys list --user " + user)
			says(w.t, fmt.Sprint(list), "reusable:true", "ephemeral:true", "aclTags:[tag:web]")
			w.demand(!strings.Contains(fmt.Sprint(list), strings.TrimSpace(key)), "the key is shown again")
		},
		"command-preauthkeys-list": func(w *world) {
			user := w.user()
			w.run("preauthkeys create --user " + user)
			w.preAuthKey("")
			keys := w.read("preauthkeys list --user " + user).([]any)
			w.demand(len(keys) == 1, "%d keys", len(keys))
		},
		"command-preauthkeys-expire": func(w *world) {
			user := w.user()
			key := strings.TrimSpace(w.run("preauthkeys create --user " + user))
			other := command(w.t, w.s, "preauthkeys", "expire", "--user", w.user(), "--key", key[4:16])
			w.demand(other.status == 1, "for another user: %+v", other)
			w.run("preauthkeys expire --user " + user + " --key " + key[4:16])
			status, _ := w.registers(key)
			w.demand(status == 401, "status %d", status)
		},
		"command-apikeys-create": func(w *world) {
			key := w.run("apikeys create --expiration 999d")
			w.demand(newAPIKey.MatchString(key), "printed %q", key)
			w.p.client(strings.TrimSpace(key)).must(w.t, 200, "GET", "/api/v1/user", "")
		},
		"command-apikeys-list": func(w *world) {
			key := newKey(w.t, w.s)
			list := w.run("apikeys list")
			says(w.t, list, key[:16])
			w.demand(!strings.Contains(list, key), "the secret is shown again")
		},
		"command-apikeys-expire": func(w *world) {
			for _, by := range []string{"--key", "--prefix"} {
				key := newKey(w.t, w.s)
				w.run("apikeys expire " + by + " " + key[4:16])
				w.p.client(key).must(w.t, 401, "GET", "/api/v1/user", "")
			}
		},
		"command-routes-list": func(w *world) {
			w.node("10.255.7.0/24")
			says(w.t, w.run("routes list"), "10.255.7.0/24")
		},
		"command-routes-enable": func(w *world) {
			route, _ := w.route()
			w.run("routes enable --route-id " + route)
			w.demand(w.enabled(route), "the route is disabled")
		},
	}
}
