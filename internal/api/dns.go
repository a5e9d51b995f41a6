package api

import (
	"cmp"
	"net/http"
	"net/netip"
	"strings"

	"github.com/fairlead-mesh/fairlead/internal/api/openapi"
	"github.com/fairlead-mesh/fairlead/internal/control"
	"github.com/fairlead-mesh/fairlead/internal/mesh"
)

// dns handles the operations on the DNS settings.
type dns struct {
	*core
	control *control.DNS
}

// GetDNS implements GET /api/v1/dns.
func (s *dns) GetDNS(w http.ResponseWriter, r *http.Request) { s.replyDNS(w, r, nil) }

// ChangeDNS implements PATCH /api/v1/dns.
func (s *dns) ChangeDNS(w http.ResponseWriter, r *http.Request, p openapi.ChangeDNSParams) {
	var in openapi.DNSChange
	err := decode(w, r, &in)
	if err == nil {
		err = s.control.Set(r.Context(), actor(r), control.DNSChange{
			MagicDNS: in.MagicDNS, Nameservers: in.Nameservers, OverrideLocalDNS: in.OverrideLocalDNS, Split: in.Split, SearchDomains: in.SearchDomains,
			ExtraRecords: dnsRecords(in.ExtraRecords), IfRevision: ifRevision(p.IfMatch),
		})
	}
	s.replyDNS(w, r, err)
}

// ResetDNS implements DELETE /api/v1/dns.
func (s *dns) ResetDNS(w http.ResponseWriter, r *http.Request, p openapi.ResetDNSParams) {
	s.replyDNS(w, r, s.control.Reset(r.Context(), actor(r), ifRevision(p.IfMatch)))
}

// ifRevision returns the revision that If-Match requires; empty means any. An empty ETag keeps
// its quotes and therefore matches no revision.
func ifRevision(ifMatch *openapi.IfMatch) string {
	text := strings.TrimSpace(or(ifMatch))
	if text == "*" {
		return ""
	}
	return cmp.Or(strings.Trim(strings.TrimPrefix(text, "W/"), `"`), text)
}

// dnsRecords converts records. The use case refuses values that are not addresses.
func dnsRecords(in *[]openapi.DNSRecord) *[]mesh.DNSRecord {
	if in == nil {
		return nil
	}
	records := make([]mesh.DNSRecord, len(*in))
	for i, r := range *in {
		addr, _ := netip.ParseAddr(r.Value)
		records[i] = mesh.DNSRecord{Name: r.Name, Type: r.Type, Value: addr}
	}
	return &records
}

// replyDNS responds with the current settings.
func (s *dns) replyDNS(w http.ResponseWriter, r *http.Request, err error) {
	if err != nil {
		s.fail(w, r, err)
		return
	}
	snap := s.ledger.World().Snapshot
	w.Header().Set("ETag", etag(control.DNSRevision(snap)))
	reply(w, snap, dnsShape(snap))
}

func (*dns) replayDNS(c replayed) (any, error) {
	c.w.Header().Set("ETag", etag(control.DNSRevision(c.snap)))
	return dnsShape(c.snap), nil
}

// currentDNS returns the settings for the response to a stale request.
func (*dns) currentDNS(_ mesh.Actor, snap *mesh.Snapshot, _ string) (shape any, revision string) {
	return dnsShape(snap), control.DNSRevision(snap)
}

func recordShapes(records []mesh.DNSRecord) []openapi.DNSRecord {
	shapes := make([]openapi.DNSRecord, len(records))
	for i, r := range records {
		shapes[i] = openapi.DNSRecord{Name: r.Name, Type: r.Type, Value: r.Value.String()}
	}
	return shapes
}

func dnsShape(s *mesh.Snapshot) openapi.DNS {
	d := s.DNS()
	shape := openapi.DNS{
		MagicDNS: d.MagicDNS, BaseDomain: d.BaseDomain, Nameservers: list(d.Nameservers), Split: map[string][]string{},
		OverrideLocalDNS: !d.KeepLocal, SearchDomains: list(d.SearchDomains), ExtraRecords: recordShapes(d.ExtraRecords), FileRecords: recordShapes(s.FileRecords()), Source: openapi.DNSSourceConfig,
	}
	for domain, servers := range d.Split {
		shape.Split[domain] = list(servers)
	}
	if set, ok := s.Settings.ByKey(mesh.SettingDNS); ok {
		at := set.UpdatedAt.Time()
		shape.Source, shape.Pinned, shape.UpdatedAt = openapi.DNSSource(set.Source), set.Pinned, &at
	}
	return shape
}
