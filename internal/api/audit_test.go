package api_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/jackc/pgx/v5"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/fairlead-mesh/fairlead/internal/mesh"
	"github.com/fairlead-mesh/fairlead/internal/mesh/meshgen"
	"github.com/fairlead-mesh/fairlead/internal/policy"
)

// auditor reads the audit log as it grows.
type auditor struct {
	*service
	seen int
}

// wrote checks that a request succeeded and recorded these changes, as "verb kind id",
// by this actor. It returns each change's before and after.
func (u *auditor) wrote(by mesh.Actor, a *answer, want ...string) (changes []object) {
	u.t.Helper()
	a.ok()
	rows := u.audit()[u.seen:]
	u.seen += len(rows)
	var got []string
	for i, row := range rows {
		got = append(got, row.Verb+" "+row.Kind+" "+row.Object)
		if row.Actor != by {
			u.t.Errorf("%s by %+v, want %+v", got[i], row.Actor, by)
		}
		if row.At == 0 || fmt.Sprint(row.Position.Rev) != a.header.Get("Mesh-Revision") || row.Position.Index != i {
			u.t.Errorf("%s at %d, revision %d.%d", got[i], row.At, row.Position.Rev, row.Position.Index)
		}
		change := object{}
		for name, data := range map[string][]byte{"before": row.Before, "after": row.After} {
			if len(data) > 0 {
				change[name] = u.shape(row.Kind, data)
			}
		}
		changes = append(changes, change)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		u.t.Errorf("rows (-want +got):\n%s", diff)
	}
	return changes
}

// shape decodes an object in the audit log, which has the same form as in the API.
func (u *auditor) shape(kind string, data []byte) (shape object) {
	u.t.Helper()
	if err := json.Unmarshal(data, &shape); err != nil {
		u.t.Fatal(err)
	}
	schemas := map[string]string{"user": "User", "node": "Node", "preauthkey": "PreAuthKey", "apikey": "ApiKey", "session": "Session", "login": "Login", "sshgrant": "SSHGrant", "policy": "PolicyVersion", "dns": "DNS"}
	for _, m := range contract().Mismatches(schemas[kind], any(shape)) {
		u.t.Errorf("%s: %s", kind, m)
	}
	return shape
}

// TestAPreferenceIsShownInTheAudit: a preference is recorded as a change of the node, and
// nothing else of the node changes.
func TestAPreferenceIsShownInTheAudit(t *testing.T) {
	s := sqlite(t)
	routers(s, 1, "10.1.0.0/16", "10.2.0.0/16")
	u := &auditor{service: s, seen: len(s.audit())}
	admin := mesh.Actor{Kind: mesh.ActorKey, ID: "1", Name: prefixOf(s.key), Addr: "127.0.0.1", RequestID: "r1"}
	before := object{}
	for _, c := range []struct {
		preference float64
		want       object
	}{{5, object{"10.1.0.0/16": 5.0}}, {-1, object{"10.1.0.0/16": -1.0}}, {0, object{}}} {
		row := u.wrote(admin, s.call("PATCH", "/api/v1/routes/1", object{"preference": c.preference}, "X-Request-Id: r1"), "changed node 1")[0]
		got := []any{row["before"].(object)["routePreferences"], row["after"].(object)["routePreferences"]}
		if diff := cmp.Diff([]any{before, c.want}, got); diff != "" {
			t.Errorf("preference %v: before and after (-want +got):\n%s", c.preference, diff)
		}
		before = c.want
	}
}

// TestWhatTheServiceChangesUnseenIsNoNews: an invisible change is recorded only if a
// person made it, not if the server did.
func TestWhatTheServiceChangesUnseenIsNoNews(t *testing.T) {
	engines(t, func(t *testing.T, s *service) {
		routers(s, 1, "10.1.0.0/16")
		for kind, want := range map[mesh.ActorKind]int{mesh.ActorServer: 0, mesh.ActorKey: 1, mesh.ActorLocal: 1, mesh.ActorUser: 1} {
			seen := len(s.audit())
			_, err := s.ledger.Commit(t.Context(), mesh.Actor{Kind: kind, ID: "1"}, func(w *policy.World, _ mesh.Time) ([]mesh.Event, error) {
				n, _ := w.Nodes.Get(1)
				c := *n
				c.Net, c.Presence = mesh.Net{}, mesh.Presence{} // not part of a NodePut
				c.Unhealthy = !n.Unhealthy
				return []mesh.Event{mesh.NodePut{Node: &c}}, nil
			})
			if err != nil {
				t.Fatal(err)
			}
			if got := len(s.audit()) - seen; got != want {
				t.Errorf("%s: %d rows, want %d", kind, got, want)
			}
		}
	})
}

// Every write is recorded: who made it, what changed, and the object before and after as the API shows it.
func TestEveryWriteIsAudited(t *testing.T) {
	engines(t, func(t *testing.T, s *service) {
		u := &auditor{service: s, seen: len(s.audit())}
		admin := mesh.Actor{Kind: mesh.ActorKey, ID: "1", Name: prefixOf(s.key), Addr: "127.0.0.1", RequestID: "r1"}
		call := func(method, path string, body any) *answer { return s.call(method, path, body, "X-Request-Id: r1") }

		made := call("POST", "/api/v1/user", object{"name": "alice"})
		if rows := u.wrote(admin, made, "created user 1"); !cmp.Equal(rows[0], object{"after": made.ok()["user"]}) {
			t.Errorf("%v", rows[0])
		}
		rows := u.wrote(admin, call("POST", "/api/v1/user/alice/rename/bob", nil), "changed user 1")
		if rows[0]["before"].(object)["name"] != "alice" || rows[0]["after"].(object)["name"] != "bob" {
			t.Errorf("%v", rows[0])
		}
		u.wrote(admin, call("POST", "/api/v1/user/bob/rename/bob", nil))

		key := call("POST", "/api/v1/preauthkey", object{"user": "bob", "reusable": true})
		text := key.ok()["preAuthKey"].(object)["key"].(string)
		if rows := u.wrote(admin, key, "created preauthkey 1"); rows[0]["after"].(object)["key"] != masked(text) {
			t.Errorf("%v", rows[0])
		}
		register := func(n uint64, want ...string) []object {
			node := mesh.Actor{Kind: mesh.ActorNode, ID: meshgen.MachineKey(n).String()[:13], Addr: "127.0.0.1", RequestID: "r1"}
			return u.wrote(node, s.call("POST", "/api/v1/machine", machine(n, text), noKey, "X-Request-Id: r1"), want...)
		}
		rows = register(1, "created node 1", "changed preauthkey 1")
		if rows[1]["before"].(object)["used"] != false || rows[1]["after"].(object)["used"] != true || rows[0]["after"].(object)["givenName"] != "host-1" {
			t.Errorf("%v", rows)
		}
		register(2, "created node 2") // the pre-auth key does not change: it was used before
		register(2)                   // repeating the request changes nothing

		rows = u.wrote(admin, call("POST", "/api/v1/node/1/rename/web", nil), "changed node 1")
		if rows[0]["before"].(object)["givenName"] != "host-1" || rows[0]["after"].(object)["givenName"] != "web" {
			t.Errorf("%v", rows)
		}
		u.wrote(admin, call("POST", "/api/v1/node/1/rename/web", nil))
		u.wrote(admin, call("PUT", "/api/v1/node/1/addresses", object{"ipv4": "100.64.7.1"}), "changed node 1")
		u.wrote(admin, call("POST", "/api/v1/node/1/expire", nil), "changed node 1")
		u.wrote(admin, call("POST", "/api/v1/node/1/expire", nil))
		rows = u.wrote(admin, call("POST", "/api/v1/node/expire", object{"all": true}), "changed node 2")
		if rows[0]["before"].(object)["expired"] != false || rows[0]["after"].(object)["expired"] != true {
			t.Errorf("%v", rows)
		}
		rows = u.wrote(admin, call("POST", "/api/v1/auth/reject", object{"authId": s.arrive(3), "reason": "no"}), "created login 1")
		if rows[0]["after"].(object)["rejected"] != "no" {
			t.Errorf("%v", rows)
		}

		rows = u.wrote(admin, call("POST", "/api/v1/preauthkey/expire", object{"id": "1"}), "changed preauthkey 1")
		if cmp.Equal(rows[0]["before"].(object)["expiration"], rows[0]["after"].(object)["expiration"]) {
			t.Errorf("%v", rows[0])
		}
		u.wrote(admin, call("POST", "/api/v1/preauthkey/expire", object{"id": "1"}))
		u.wrote(admin, call("POST", "/api/v1/preauthkey", object{"aclTags": []string{"tag:a"}}), "created preauthkey 2")
		rows = u.wrote(admin, call("DELETE", "/api/v1/preauthkey?id=2", nil), "deleted preauthkey 2")
		if _, after := rows[0]["after"]; after || rows[0]["before"].(object)["id"] != "2" {
			t.Errorf("%v", rows[0])
		}
		rows = u.wrote(admin, call("DELETE", "/api/v1/user/bob", nil), "deleted user 1", "deleted node 1", "deleted node 2", "deleted preauthkey 1")
		if rows[0]["before"].(object)["nodeCount"] != 2.0 {
			t.Errorf("%v", rows[0])
		}

		u.wrote(admin, call("POST", "/api/v1/apikey", nil), "created apikey 2")
		u.wrote(admin, call("POST", "/api/v1/apikey/expire", object{"id": "2"}), "changed apikey 2")
		u.wrote(admin, call("DELETE", "/api/v1/apikey/2", nil), "deleted apikey 2")
	})
}

// A secret is shown once and stored nowhere: not in the database, the log, the metrics
// or the audit log. The public part of each key is found there, which shows that the
// search works.
func TestSecretsAreKeptNowhere(t *testing.T) {
	t.Run("sqlite", func(t *testing.T) {
		dir := t.TempDir()
		s := start(t, openSQLiteAt(t, filepath.Join(dir, "db")))
		hunt(t, s, func() (content string) {
			files, err := filepath.Glob(filepath.Join(dir, "*"))
			if err != nil || len(files) < 3 { // the database, its lock and its WAL
				t.Fatalf("%v %v", files, err)
			}
			for _, name := range files {
				data, err := os.ReadFile(name)
				if err != nil {
					t.Fatal(err)
				}
				content += string(data)
			}
			return content
		})
	})
	t.Run("postgres", func(t *testing.T) {
		name := postgres(t).Database(t)
		s := start(t, openPostgres(t, name))
		hunt(t, s, func() string { return dump(t, name) })
	})
}

func hunt(t *testing.T, s *service, stored func() string) {
	s.newUser("alice")
	_, apiKey := s.newKey()
	spent, open := s.preAuthKey(object{"user": "alice"}), s.preAuthKey(object{"user": "alice", "reusable": true, "aclTags": []string{"tag:a"}})
	keys := []string{s.key, apiKey, spent, open}
	// Use the keys, correctly and incorrectly, everywhere that one can appear.
	s.call("GET", "/api/v1/user", nil, "Authorization: Bearer "+apiKey).ok()
	s.register(machine(1, spent)).ok()
	s.register(machine(2, spent))
	s.register(with(machine(3, open), object{"tags": []string{"tag:admin"}}))
	s.register(with(machine(3, open), object{"hostname": "\x00"}))
	s.call("POST", "/api/v1/preauthkey/expire", object{"key": open}).ok()
	s.register(machine(3, open))
	s.call("DELETE", "/api/v1/preauthkey?id="+open, nil).ok()
	s.call("DELETE", "/api/v1/preauthkey?id="+open, nil)
	s.call("POST", "/api/v1/apikey/expire", object{"key": apiKey}).ok()
	s.call("GET", "/api/v1/user", nil, "Authorization: Bearer "+apiKey)
	s.call("DELETE", "/api/v1/apikey/"+apiKey, nil, noKey)
	s.call("DELETE", "/api/v1/apikey/"+apiKey, nil).ok()
	s.call("GET", "/api/v1/user/"+apiKey, nil)
	boom := errors.New("upside down")
	s.store.fail.Store(&boom)
	s.call("DELETE", "/api/v1/apikey/"+s.key, nil)
	s.store.fail.Store(nil)

	metrics := serve(promhttp.HandlerFor(s.metrics, promhttp.HandlerOpts{}), newRequest(t, "GET", "/metrics")).Body.String()
	audit, err := json.Marshal(s.audit())
	if err != nil {
		t.Fatal(err)
	}
	var shapes strings.Builder
	for _, row := range s.audit() {
		shapes.Write(row.Before)
		shapes.Write(row.After)
	}
	lists := ""
	for _, path := range []string{"apikey", "preauthkey", "node"} {
		lists += string(s.call("GET", "/api/v1/"+path, nil).body)
	}
	places := map[string]string{
		"the database": stored(), "the log": s.log.text(), "the metrics": metrics, "the audit": string(audit) + shapes.String(), "lists": lists,
	}
	for _, key := range keys {
		secret := key[len("flk_")+12+1:]
		for place, content := range places {
			if strings.Contains(content, secret) {
				t.Errorf("the secret of %s is in %s", masked(key), place)
			}
			if place != "the metrics" && place != "lists" && !strings.Contains(content, prefixOf(key)) {
				t.Errorf("the search does not even find the public part of %s in %s", masked(key), place)
			}
		}
	}
}

// dump reads every column of every table as text.
func dump(t *testing.T, database string) string {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), postgres(t).URL(database))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(t.Context())
	rows, err := conn.Query(t.Context(), "SELECT table_name FROM information_schema.tables WHERE table_schema = 'public'")
	if err != nil {
		t.Fatal(err)
	}
	tables, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil || len(tables) < 9 {
		t.Fatalf("%v %v", tables, err)
	}
	var content strings.Builder
	for _, table := range tables {
		rows, err := conn.Query(t.Context(), "SELECT * FROM "+pgx.Identifier{table}.Sanitize())
		if err != nil {
			t.Fatal(err)
		}
		for rows.Next() {
			for _, column := range rows.RawValues() {
				content.Write(column)
				content.WriteByte('\n')
			}
		}
		if err := rows.Err(); err != nil {
			t.Fatal(err)
		}
	}
	return content.String()
}
