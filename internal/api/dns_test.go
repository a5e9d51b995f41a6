package api_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/fairlead-mesh/fairlead/internal/mesh"
)

// configuredDNS sets the DNS settings of the service's configuration.
func (s *service) configuredDNS(dns mesh.DNS, pinned bool) *service {
	s.t.Helper()
	if err := s.control.DNS.Configure(s.t.Context(), dns, pinned); err != nil {
		s.t.Fatal(err)
	}
	return s
}

func (s *service) setDNS(body object, headers ...string) *answer {
	s.t.Helper()
	return s.call("PATCH", "/api/v1/dns", body, headers...)
}

func TestDNSIsChangedPartByPartAndReset(t *testing.T) {
	s := sqlite(t)
	s.configuredDNS(mesh.DNS{MagicDNS: true, BaseDomain: "mesh.example", SearchDomains: []string{"corp.example"}}, false)
	first := s.call("GET", "/api/v1/dns", nil)
	want := object{
		"magicDNS": true, "baseDomain": "mesh.example", "nameservers": []any{}, "split": object{}, "searchDomains": []any{"corp.example"},
		"extraRecords": []any{}, "fileRecords": []any{}, "overrideLocalDNS": true, "source": "config", "pinned": false, "updatedAt": first.ok()["updatedAt"],
	}
	if diff := cmp.Diff(want, first.ok()); diff != "" {
		t.Errorf("configured (-want +got):\n%s", diff)
	}
	want["source"] = "api"
	for _, c := range []struct{ change, became object }{
		{object{"magicDNS": false}, object{"magicDNS": false}},
		{object{"magic_dns": true, "nameservers": []string{"9.9.9.9", "https://dns.example/q"}}, object{"magicDNS": true, "nameservers": []any{"9.9.9.9", "https://dns.example/q"}}},
		{object{"split": object{"Lab.example.": []string{"10.0.0.53"}, "own.example": []string{}}}, object{"split": object{"lab.example": []any{"10.0.0.53"}, "own.example": []any{}}}},
		{
			object{"searchDomains": []string{}, "extra_records": []object{{"name": "Printer.example", "type": "AAAA", "value": "FD00::7"}}},
			object{"searchDomains": []any{}, "extraRecords": []any{object{"name": "printer.example", "type": "AAAA", "value": "fd00::7"}}},
		},
		{object{"split": nil, "baseDomain": "other.example", "nameservers": []string{}}, object{"nameservers": []any{}}},
	} {
		a := s.setDNS(c.change)
		for name, value := range c.became {
			want[name] = value
		}
		want["updatedAt"] = a.ok()["updatedAt"]
		if diff := cmp.Diff(want, a.ok()); diff != "" {
			t.Errorf("%v (-want +got):\n%s", c.change, diff)
		}
		read := s.call("GET", "/api/v1/dns", nil)
		if diff := cmp.Diff(a.ok(), read.ok()); diff != "" || read.header.Get("ETag") != a.header.Get("ETag") {
			t.Errorf("answered and read (-answered +read):\n%s", diff)
		}
	}
	reset := s.call("DELETE", "/api/v1/dns", nil).ok()
	want = first.ok()
	want["updatedAt"] = reset["updatedAt"]
	if diff := cmp.Diff(want, reset); diff != "" {
		t.Errorf("reset (-want +got):\n%s", diff)
	}
}

func TestDNSThatIsNoneIsRefusedWithItsPlace(t *testing.T) {
	s := sqlite(t).configuredDNS(mesh.DNS{}, false)
	record := func(name, kind, value string) object {
		return object{"extraRecords": []object{{"name": name, "type": kind, "value": value}}}
	}
	for _, c := range []struct {
		path string
		body object
	}{
		{"magicDNS", object{"magicDNS": "yes"}},
		{"magicDNS", object{"magicDNS": true}}, // without a base domain
		{"nameservers", object{"nameservers": "9.9.9.9"}},
		{"nameservers", object{"nameservers": []string{"dns.example"}}},
		{"searchDomains", object{"searchDomains": []string{"a b"}}},
		{"split", object{"split": []string{}}},
		{"split", object{"split": object{"a b": []string{}}}},
		{"split.a.example", object{"split": object{"a.example": []string{"x"}}}},
		{"split.a", object{"split": object{"a": "9.9.9.9"}}},
		{"split.a[0]", object{"split": object{"a": []bool{true}}}},
		{"extraRecords[0]", object{"extraRecords": []string{"a.example"}}},
		{"extraRecords[0].name", object{"extraRecords": []object{{"name": true}}}},
		{"extraRecords[0].type", object{"extraRecords": []object{{"name": "a.example"}}}},
		{"extraRecords", record("a b", "A", "10.0.0.1")},
		{"extraRecords", record("a.example", "MX", "10.0.0.1")},
		{"extraRecords", record("a.example", "A", "fd00::1")},
		{"extraRecords", record("a.example", "A", "nowhere")},
	} {
		a := s.setDNS(c.body)
		if a.status != http.StatusBadRequest || a.decoded()["errors"].([]any)[0].(object)["path"] != c.path {
			t.Errorf("%v: %d %s, want the path %s", c.body, a.status, a.body, c.path)
		}
	}
	if got := s.call("GET", "/api/v1/dns", nil).ok(); got["source"] != "config" {
		t.Errorf("something was changed: %v", got)
	}
}

func TestPinnedDNSIsRefusedWithTheReason(t *testing.T) {
	s := sqlite(t).configuredDNS(mesh.DNS{Nameservers: []string{"9.9.9.9"}}, true)
	if got := s.call("GET", "/api/v1/dns", nil).ok(); got["pinned"] != true {
		t.Errorf("%v", got)
	}
	s.setDNS(object{"nameservers": []string{}}).fails(http.StatusConflict, "Conflict",
		"the DNS settings are pinned in the configuration; change them there, or remove dns.pinned and restart", "")
	s.call("DELETE", "/api/v1/dns", nil).ok() // allowed, because the settings already equal the configuration
}

func TestStaleDNSIsAnsweredWithTheCurrentOne(t *testing.T) {
	s := sqlite(t)
	s.configuredDNS(mesh.DNS{}, false)
	etag := s.call("GET", "/api/v1/dns", nil).header.Get("ETag")
	current := s.setDNS(object{"searchDomains": []string{"a.example"}}, "If-Match: "+etag)
	for _, method := range []string{"PATCH", "DELETE"} {
		for _, stale := range []string{etag, `""`, `"x"`} {
			a := s.call(method, "/api/v1/dns", object{"searchDomains": []string{}}, "If-Match: "+stale)
			if a.status != http.StatusPreconditionFailed {
				t.Fatalf("%s %s: %d %s", method, stale, a.status, a.body)
			}
			if diff := cmp.Diff(current.ok(), a.decoded()["current"].(object)); diff != "" {
				t.Errorf("%s (-want +got):\n%s", method, diff)
			}
		}
	}
	s.setDNS(object{"searchDomains": []string{}}, "If-Match: "+current.header.Get("ETag")).ok()
	s.call("DELETE", "/api/v1/dns", nil, "If-Match: *").ok()
}

func TestOfTwoChangesFromOneDNSOneWins(t *testing.T) {
	s := sqlite(t)
	etag := s.listen().setDNS(object{"searchDomains": []string{"a.example"}}).header.Get("ETag")
	oneWins(t, func(i int) int {
		return s.setDNS(object{"searchDomains": []string{strings.Repeat("b", i+1) + ".example"}}, "If-Match: "+etag).status
	})
}

func TestChangesOfDNSAreAudited(t *testing.T) {
	s := sqlite(t)
	s.configuredDNS(mesh.DNS{BaseDomain: "mesh.example"}, false)
	rows := s.audit()
	if last := rows[len(rows)-1]; last.Kind != "dns" || last.Verb != "created" || last.Actor.Kind != mesh.ActorReplica {
		t.Errorf("the configuration: %+v", last)
	}
	u := &auditor{service: s, seen: len(rows)}
	admin := mesh.Actor{Kind: mesh.ActorKey, ID: "1", Name: prefixOf(s.key), Addr: "127.0.0.1", RequestID: "r1"}
	before := s.call("GET", "/api/v1/dns", nil).ok()
	changed := s.setDNS(object{"nameservers": []string{"9.9.9.9"}}, "X-Request-Id: r1")
	row := u.wrote(admin, changed, "changed dns dns")[0]
	if diff := cmp.Diff(object{"before": before, "after": changed.ok()}, row); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	u.wrote(admin, s.setDNS(object{"nameservers": []string{"9.9.9.9"}}, "X-Request-Id: r1")) // unchanged, so not recorded
	u.wrote(admin, s.call("DELETE", "/api/v1/dns", nil, "X-Request-Id: r1"), "changed dns dns")
}

func TestDNSOfOneReplicaHoldsOnAnother(t *testing.T) {
	a, b := replicas(t)
	set := a.setDNS(object{"searchDomains": []string{"a.example"}})
	rev := "Mesh-Min-Revision: " + set.header.Get("Mesh-Revision")
	if diff := cmp.Diff(set.ok(), b.call("GET", "/api/v1/dns", nil, rev).ok()); diff != "" {
		t.Errorf("set on one and read on the other (-set +read):\n%s", diff)
	}
	b.configuredDNS(mesh.DNS{SearchDomains: []string{"b.example"}}, false) // as at startup
	if got := b.call("GET", "/api/v1/dns", nil).ok(); !cmp.Equal(got, set.ok()) {
		t.Errorf("a start undid what was set: %v", got)
	}
	b.setDNS(object{"nameservers": []string{"9.9.9.9"}}, rev, "If-Match: "+set.header.Get("ETag")).ok()
}

func TestBaseDomainComesFromTheConfigurationAlone(t *testing.T) {
	s := sqlite(t).configuredDNS(mesh.DNS{MagicDNS: true, BaseDomain: "mesh.example"}, false)
	s.setDNS(object{"nameservers": []string{"9.9.9.9"}}).ok()
	for _, domain := range []string{"other.example", ""} {
		got := s.configuredDNS(mesh.DNS{BaseDomain: domain}, false).call("GET", "/api/v1/dns", nil).ok()
		if got["baseDomain"] != domain || got["magicDNS"] != (domain != "") || got["source"] != "api" || len(got["nameservers"].([]any)) != 1 {
			t.Errorf("configured %q: %v", domain, got)
		}
	}
}
