package cli

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/fairlead-mesh/fairlead/internal/api/openapi"
)

func TestDNSCommandsChangeTheirPartAlone(t *testing.T) {
	for command, want := range map[string]string{
		"dns set --magic-dns=false":                                   `{"magicDNS":false}`,
		"dns set --override-local-dns=false":                          `{"overrideLocalDNS":false}`,
		"dns set --nameservers 9.9.9.9 --nameservers=149.112.112.112": `{"nameservers":["9.9.9.9","149.112.112.112"]}`,
		"dns set --nameservers= --search-domains a.example,b.example": `{"nameservers":[],"searchDomains":["a.example","b.example"]}`,
		"dns split set A.example 10.0.0.1 10.0.0.2":                   `{"split":{"a.example":["10.0.0.1","10.0.0.2"],"corp.example.com":["10.1.0.53","10.2.0.53"],"lab.example.com":[]}}`,
		"dns split remove lab.example.com":                            `{"split":{"corp.example.com":["10.1.0.53","10.2.0.53"]}}`,
		"dns record remove grafana.mesh.example.com":                  `{"extraRecords":[{"name":"printer.example.com","type":"A","value":"192.168.7.9"}]}`,
	} {
		socket, log := listen(t, cannedServer())
		if r := fairlead(t, socket, strings.Fields(command)); r.status != 0 {
			t.Errorf("%s: status %d, %s", command, r.status, &r.stderr)
		}
		sent := log.requests()
		if diff := cmp.Diff(request{Method: "PATCH", Path: "/api/v1/dns", Body: want}, sent[len(sent)-1]); diff != "" {
			t.Errorf("%s (-want +got):\n%s", command, diff)
		}
	}
}

// contested is a server on which someone else changes the settings between a read and a write, left times.
type contested struct {
	canned
	left    *int
	records *[]openapi.DNSRecord
}

func (c contested) GetDNS(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("ETag", `"`+strings.Repeat("x", len(*c.records)+1)+`"`)
	reply(w, openapi.DNS{ExtraRecords: *c.records, Split: map[string][]string{}})
}

func (c contested) ChangeDNS(w http.ResponseWriter, r *http.Request, p openapi.ChangeDNSParams) {
	if *c.left > 0 {
		*c.left--
		*c.records = append(*c.records, openapi.DNSRecord{Name: "theirs.example", Type: "A", Value: "10.0.0.1"})
	}
	if *p.IfMatch != `"`+strings.Repeat("x", len(*c.records)+1)+`"` {
		w.Header().Set("Content-Type", "application/problem+json")
		w.WriteHeader(http.StatusPreconditionFailed)
		_ = json.NewEncoder(w).Encode(openapi.Problem{Detail: "the DNS settings have changed in the meantime"})
		return
	}
	var in openapi.DNSChange
	if err := json.NewDecoder(r.Body).Decode(&in); err != nil {
		panic(err)
	}
	*c.records = *in.ExtraRecords
	reply(w, openapi.DNS{ExtraRecords: *c.records})
}

func TestRecordsOfTwoPeopleAreBothKept(t *testing.T) {
	left, records := 3, []openapi.DNSRecord{}
	socket, _ := listen(t, openapi.Handler(contested{left: &left, records: &records}))
	r := fairlead(t, socket, []string{"dns", "record", "add", "Ours.example", "fd00:0::1"})
	if r.status != 0 || len(records) != 4 || records[3] != (openapi.DNSRecord{Name: "ours.example", Type: "AAAA", Value: "fd00::1"}) {
		t.Errorf("status %d, %s, records %v", r.status, &r.stderr, records)
	}
	left = 100
	if r := fairlead(t, socket, []string{"dns", "record", "add", "ours.example", "fd00::2"}); r.status != 1 || !strings.Contains(r.stderr.String(), "try again") {
		t.Errorf("status %d, %s", r.status, &r.stderr)
	}
}
