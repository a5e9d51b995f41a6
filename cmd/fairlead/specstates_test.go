package main_test

import (
	"fmt"
	"strings"
	"time"
)

func states() map[string]row {
	return map[string]row{
		"state-route-enabled": func(w *world) {
			route, prefix := w.route()
			w.demand(!w.enabled(route), "a route begins enabled")
			w.run("routes enable --route-id " + route)
			w.demand(w.enabled(route), "the route is disabled")
			w.logged("route enabled", "route:"+prefix)
		},
		"state-route-disabled": func(w *world) {
			route, prefix := w.route()
			w.run("routes enable --route-id " + route)
			w.run("routes disable --route-id " + route)
			w.demand(!w.enabled(route), "the route is enabled")
			w.logged("route disabled", "route:"+prefix)
		},
		"state-node-expired": func(w *world) {
			id := w.node()
			w.run("nodes expire " + id)
			w.demand(w.nodeNow(id)["expired"] == true, "the node is not expired")
		},
		"state-node-removed": func(w *world) {
			id := w.node()
			w.run("nodes delete --force --identifier " + id)
			w.p.client("").must(w.t, 404, "GET", "/api/v1/node/"+id, "")
		},
		"state-all-nodes-expired": func(w *world) {
			w.node()
			w.run("nodes expire --all --force")
			for _, n := range w.get("/api/v1/node")["nodes"].([]any) {
				w.demand(n.(map[string]any)["expired"] == true, "%v is not expired", n)
			}
		},
		"state-offline-nodes-expired": func(w *world) {
			w.node()
			w.run("nodes expire --all-offline --force")
			for _, n := range w.get("/api/v1/node")["nodes"].([]any) {
				w.demand(n.(map[string]any)["online"] == true || n.(map[string]any)["expired"] == true, "%v is not expired", n)
			}
		},
		"state-preauthkey-expired": func(w *world) {
			key := w.preAuthKey("--reusable")
			status, _ := w.registers(key)
			w.demand(status == 200, "before: %d", status)
			w.run("preauthkeys expire --key " + key[4:16])
			status, _ = w.registers(key)
			w.demand(status == 401, "after: %d", status)
		},
		"state-preauthkey-ended": func(w *world) {
			key := w.preAuthKey("--reusable --expiration 1s")
			eventually(w.t, func() error {
				if status, _ := w.registers(key); status != 401 {
					return fmt.Errorf("status %d", status)
				}
				return nil
			})
		},
		"state-apikey-expired": func(w *world) {
			key := newKey(w.t, w.s)
			client := w.p.client(key)
			client.must(w.t, 200, "GET", "/api/v1/user", "")
			w.run("apikeys expire --prefix " + key[4:16])
			client.must(w.t, 401, "GET", "/api/v1/user", "")
		},
		"state-user-removed": func(w *world) {
			id := w.node()
			owner := w.nodeNow(id)["user"].(map[string]any)["name"].(string)
			w.run("users delete " + owner + " --force")
			w.demand(len(w.get("/api/v1/user?name=" + owner)["users"].([]any)) == 0, "the user is there")
			w.p.client("").must(w.t, 404, "GET", "/api/v1/node/"+id, "")
		},
	}
}

// refusals lists the errors of a running server. Startup errors have their own tests.
func refusals() map[string]row {
	return map[string]row{
		"error-key-missing": func(w *world) {
			stranger := w.p.client("x")
			stranger.key = ""
			says(w.t, stranger.must(w.t, 401, "GET", "/api/v1/user", ""), `"Unauthorized: bearer token missing"`)
		},
		"error-key-wrong": func(w *world) {
			says(w.t, w.p.client("flk_aaaaaaaaaaaa_b").must(w.t, 401, "GET", "/api/v1/user", ""), `"Authentication failed: invalid API key"`)
		},
		"error-registration": func(w *world) {
			ended := w.preAuthKey("")
			w.run("preauthkeys expire --key " + ended[4:16])
			for _, key := range []string{ended, "flp_aaaaaaaaaaaa_b", "garbage"} {
				status, body := w.registers(key)
				w.demand(status == 401, "status %d", status)
				says(w.t, body, `"Authentication failed: invalid key"`, `"Node registration rejected"`)
			}
		},
	}
}

// listed returns the element of an API list in which a field has this value.
func (w *world) listed(path, list, member, value string) map[string]any {
	w.t.Helper()
	for _, o := range w.get(path)[list].([]any) {
		if o := o.(map[string]any); o[member] == value {
			return o
		}
	}
	w.t.Fatalf("%s: no %s is %s", path, member, value)
	return nil
}

// has fails the row unless an object has these fields.
func (w *world) has(o map[string]any, names ...string) {
	w.t.Helper()
	for _, name := range names {
		_, ok := o[name]
		w.demand(ok, "there is no %s in %v", name, o)
	}
}

func fields() map[string]row {
	first := func(w *world, path, list string) map[string]any {
		return w.get(path)[list].([]any)[0].(map[string]any)
	}
	return map[string]row{
		"fields-node": func(w *world) {
			n := w.nodeNow(w.node())
			w.has(n, "id", "hostname", "user", "ipAddresses", "online", "lastSeen", "createdAt", "updatedAt", "os", "arch", "clientVersion", "tags", "expired")
			w.demand(len(n["ipAddresses"].([]any)) == 2, "addresses %v", n["ipAddresses"])
		},
		"fields-user": func(w *world) {
			id := w.node()
			owner := w.nodeNow(id)["user"].(map[string]any)["name"].(string)
			u := first(w, "/api/v1/user?name="+owner, "users")
			w.has(u, "name", "nodeCount", "createdAt")
			w.demand(u["nodeCount"] == 1.0, "%v nodes", u["nodeCount"])
		},
		"fields-preauthkey": func(w *world) {
			key := w.preAuthKey("--tags tag:web")
			w.registers(key)
			k := w.listed("/api/v1/preauthkey", "preAuthKeys", "key", key[:17]+"***") // the part that lists show
			w.has(k, "key", "user", "createdAt", "expiration", "reusable", "ephemeral", "aclTags", "used")
			w.demand(k["used"] == true && k["reusable"] == false && k["ephemeral"] == false && fmt.Sprint(k["aclTags"]) == "[tag:web]", "%v", k)
			unused := w.preAuthKey("--reusable --ephemeral")
			k = w.listed("/api/v1/preauthkey", "preAuthKeys", "key", unused[:17]+"***")
			w.demand(k["used"] == false && k["reusable"] == true && k["ephemeral"] == true, "%v", k)
		},
		"fields-apikey": func(w *world) {
			key := strings.TrimSpace(w.run("apikeys create --expiration 90d"))
			k := w.listed("/api/v1/apikey", "apiKeys", "prefix", key[:17]+"***")
			ends, err := time.Parse(time.RFC3339, k["expiration"].(string))
			w.demand(err == nil && time.Until(ends).Round(24*time.Hour) == 90*24*time.Hour, "%v", k)
		},
		"fields-route": func(w *world) {
			routes := w.routesOf(w.node("192.168.7.0/24", "0.0.0.0/0", "::/0"))
			w.demand(len(routes) == 3, "%d routes", len(routes))
			for _, r := range routes {
				w.has(r, "id", "node", "prefix", "enabled")
			}
		},
		"fields-policy": func(w *world) {
			const policy = `{"groups": {"group:ops": ["alice@"]}, "tagOwners": {"tag:web": ["group:ops"]}, "acls": [
				{"action": "accept", "src": ["*", "group:ops", "tag:web"], "dst": ["*:*", "tag:web:80,443", "100.64.0.1:22"], "comment": "all of it"}]}`
			body := fmt.Sprintf(`{"policy": %q}`, strings.ReplaceAll(policy, "\t", ""))
			w.p.client("").must(w.t, 200, "PUT", "/api/v1/policy", body)
			w.logged("policy loaded")
			w.demand(w.get("/api/v1/policy")["policy"] == strings.ReplaceAll(policy, "\t", ""), "another policy is stored")
			for member, wrong := range map[string]string{
				"groups": `{"groups": {"ops": []}}`, "tagOwners": `{"tagOwners": {"web": []}}`, "acls": `{"acls": [{"action": "deny"}]}`, "dst": `{"acls": [{"action": "accept", "src": ["*"], "dst": ["*"]}]}`,
			} {
				status, answer, err := w.p.client("").do("PUT", "/api/v1/policy", fmt.Sprintf(`{"policy": %q}`, wrong))
				w.demand(err == nil && status == 400, "wrong %s: %d %s", member, status, answer)
			}
		},
	}
}

func logLines() map[string]row {
	return map[string]row{
		"log-authentication-failed": func(w *world) {
			w.p.client("flk_aaaaaaaaaaaa_b").must(w.t, 401, "GET", "/api/v1/user", "")
			w.logged("authentication failed", "addr:127.0.0.1")
		},
		"log-unauthorized": func(w *world) {
			stranger := w.p.client("x")
			stranger.key = ""
			stranger.must(w.t, 401, "GET", "/api/v1/user", "")
			w.logged("unauthorized", "addr:127.0.0.1")
		},
		"log-forbidden": func(w *world) {
			reader := w.p.client(strings.TrimSpace(w.run("apikeys create --role read")))
			reader.must(w.t, 403, "POST", "/api/v1/user", `{"name": "x"}`)
			w.logged("forbidden", "addr:127.0.0.1")
		},
		"log-node-registered": func(w *world) {
			id := w.node()
			w.logged("node registered", "node:"+id)
		},
		"log-route-enabled":  states()["state-route-enabled"],
		"log-route-disabled": states()["state-route-disabled"],
		"log-acl-denied": func(w *world) {
			w.p.client("").must(w.t, 200, "PUT", "/api/v1/policy", `{"policy": "{\"tagOwners\": {\"tag:closed\": []}, \"acls\": []}"}`)
			body := strings.Replace(registration(w.preAuthKey(""), w.name("host")), `"os"`, `"tags": ["tag:closed"], "os"`, 1)
			w.p.client("").must(w.t, 403, "POST", "/api/v1/machine", body)
			w.logged("ACL denied")
		},
		"log-policy": func(w *world) {
			w.p.client("").must(w.t, 200, "PUT", "/api/v1/policy", `{"policy": "{\"acls\": [{\"action\": \"accept\", \"src\": [\"*\"], \"dst\": [\"*:22\"]}]}"}`)
			w.logged("policy loaded")
		},
	}
}

func metricNames() map[string]row {
	served := func(names ...string) row {
		return func(w *world) {
			text := w.p.metricsText(w.t)
			for _, name := range names {
				says(w.t, text, "# TYPE "+name+" ")
			}
		}
	}
	return map[string]row{
		"metrics-nodes": served("mesh_nodes_total", "mesh_nodes_registered", "mesh_nodes_online", "mesh_nodes_offline", "mesh_node_registrations_total"),
		"metrics-node-gauges": func(w *world) {
			w.node()
			all := w.get("/api/v1/node")["nodes"].([]any)
			registered := 0
			for _, n := range all {
				if n.(map[string]any)["expired"] == false {
					registered++
				}
			}
			says(w.t, w.p.metricsText(w.t), fmt.Sprintf("\nmesh_nodes_total %d\n", len(all)), fmt.Sprintf("\nmesh_nodes_registered %d\n", registered),
				"\nmesh_nodes_online 0\n", fmt.Sprintf("\nmesh_nodes_offline %d\n", len(all)))
		},
		"metrics-relay": served("mesh_derp_connections_active", "mesh_network_bytes_sent_total", "mesh_network_bytes_received_total", "mesh_connection_latency_seconds"),
		"metrics-http": func(w *world) {
			w.p.client("").must(w.t, 200, "GET", "/health", "")
			says(w.t, w.p.metricsText(w.t), `mesh_http_requests_total{code="200"}`, "# TYPE mesh_http_request_duration_seconds histogram")
		},
		"metrics-database": served("mesh_db_connections_open", "mesh_db_connections_idle", "mesh_db_query_duration_seconds", "mesh_db_max_open_connections"),
	}
}
