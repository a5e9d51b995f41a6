package cli

import (
	"net/http"

	"github.com/fairlead-mesh/fairlead/internal/api/openapi"
)

func dns() openapi.DNS {
	return openapi.DNS{
		MagicDNS: true, BaseDomain: "mesh.example.com", Nameservers: []string{"9.9.9.9", "https://dns.example.com/dns-query"},
		Split:         map[string][]string{"corp.example.com": {"10.1.0.53", "10.2.0.53"}, "lab.example.com": {}},
		SearchDomains: []string{"corp.example.com"}, OverrideLocalDNS: true, FileRecords: []openapi.DNSRecord{{Name: "wiki.example.com", Type: "A", Value: "192.168.7.10"}},
		ExtraRecords: []openapi.DNSRecord{
			{Name: "grafana.mesh.example.com", Type: "A", Value: "100.64.0.7"},
			{Name: "grafana.mesh.example.com", Type: "AAAA", Value: "fd7a:115c:a1e0::7"},
			{Name: "printer.example.com", Type: "A", Value: "192.168.7.9"},
		},
		Source: openapi.DNSSourceAPI, UpdatedAt: new(at("2026-03-01T09:30:00Z")),
	}
}

func replyDNS(w http.ResponseWriter) {
	w.Header().Set("ETag", `"5b1f0c2e9a7d4410"`)
	reply(w, dns())
}

func (canned) GetDNS(w http.ResponseWriter, _ *http.Request) { replyDNS(w) }

func (canned) ChangeDNS(w http.ResponseWriter, _ *http.Request, _ openapi.ChangeDNSParams) {
	replyDNS(w)
}

func (canned) ResetDNS(w http.ResponseWriter, _ *http.Request, _ openapi.ResetDNSParams) {
	replyDNS(w)
}
