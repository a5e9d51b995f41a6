package mesh

import (
	"encoding/json"
	"net/netip"
	"net/url"
	"strconv"

	"tailscale.com/types/key"
)

// Relay is a relay that runs as a process of its own. It authenticates with a key, of which
// Prefix is the public part.
type Relay struct {
	ID     RelayID `json:"id"`
	Name   string  `json:"name"`
	Prefix string  `json:"prefix"`
	Hash   Secret  `json:"hash"`
	// Region is its region number. All relays of a region have the same RegionCode and RegionName.
	Region     int    `json:"region"`
	RegionCode string `json:"regionCode"`
	RegionName string `json:"regionName"`
	// Draining means that nodes are not sent to this relay.
	Draining  bool `json:"draining,omitempty"`
	CreatedAt Time `json:"createdAt"`
	// Place is where clients reach the relay. It is empty until the relay joins, and after it
	// has stopped.
	Place RelayPlace `json:"place,omitzero" column:"place"`

	// Report changes often and has an event of its own. RelayPut does not change it.
	Report RelayReport `json:"-"`
}

// RelayPlace is where clients and other relays reach a relay, as it says itself.
type RelayPlace struct {
	URL      string         `json:"url"`
	STUNPort int            `json:"stunPort,omitempty"` // negative if it does not respond to STUN
	IPv4     netip.Addr     `json:"ipv4,omitzero"`
	IPv6     netip.Addr     `json:"ipv6,omitzero"`
	Key      key.NodePublic `json:"key"`
	Version  string         `json:"version,omitempty"`
	JoinedAt Time           `json:"joinedAt"`
}

// RelayReport is what a relay last said about its work. Counters begin when it starts.
type RelayReport struct {
	At            Time  `json:"at"`
	Clients       int   `json:"clients,omitempty"`
	BytesReceived int64 `json:"bytesReceived,omitempty"`
	BytesSent     int64 `json:"bytesSent,omitempty"`
	Refused       int64 `json:"refused,omitempty"`
	// LatencyMicros is how long the report before this one took to reach the server and back.
	LatencyMicros int64 `json:"latencyMicros,omitempty"`
	// Peers is the number of relays of its region that it is connected to.
	Peers int `json:"peers,omitempty"`
}

// Joined reports whether the relay has said where it is.
func (r *Relay) Joined() bool { return r.Place.URL != "" }

// Offered reports whether clients get the relay.
func (r *Relay) Offered() bool { return r.Joined() && !r.Draining }

// Host returns the host name and the port of the relay's URL.
func (p RelayPlace) Host() (name string, port int) {
	u, err := url.Parse(p.URL)
	if err != nil {
		return "", 0
	}
	if port, err = strconv.Atoi(u.Port()); err != nil {
		port = 443
		if u.Scheme == "http" {
			port = 80
		}
	}
	return u.Hostname(), port
}

// RelayPut adds or replaces a relay, except its Report.
type RelayPut struct {
	Relay *Relay `json:"relay"`
}

// Kind names the event in the log.
func (RelayPut) Kind() Kind          { return KindRelayPut }
func (e RelayPut) valid() bool       { return e.Relay != nil && valid(e.Relay.ID) }
func (e RelayPut) count(c *Counters) { c.Relay = max(c.Relay, e.Relay.ID) }
func (e RelayPut) apply(d *Draft) {
	r := *e.Relay
	r.Report = RelayReport{}
	if old, ok := d.s.Relays.Get(r.ID); ok {
		r.Report = old.Report
	}
	d.putRelay(r.ID, &r)
}

// RelayGone removes a relay.
type RelayGone struct {
	ID RelayID `json:"id"`
}

// Kind names the event in the log.
func (RelayGone) Kind() Kind       { return KindRelayGone }
func (e RelayGone) valid() bool    { return valid(e.ID) }
func (e RelayGone) apply(d *Draft) { d.putRelay(e.ID, nil) }

// putRelay counts as a change of a setting, because the relay map is one.
func (d *Draft) putRelay(id RelayID, r *Relay) {
	keep(d.e, &d.s.Relays.Table, &d.s.Relays.byPrefix, id, r, func(r *Relay) string { return r.Prefix })
	d.s.SettingsRev = d.s.Rev
}

// RelayReported replaces the report of a relay. It does nothing if the relay has been
// deleted.
type RelayReported struct {
	ID     RelayID     `json:"id"`
	Report RelayReport `json:"report"`
}

// Kind names the event in the log.
func (RelayReported) Kind() Kind    { return KindRelayReported }
func (e RelayReported) valid() bool { return valid(e.ID) }
func (e RelayReported) apply(d *Draft) {
	change(d.e, &d.s.Relays.Table, e.ID, func(r *Relay) { r.Report = e.Report })
}

// Relays holds all relays of a snapshot that run as processes of their own.
type Relays struct {
	Table[RelayID, Relay]
	byPrefix index[string, RelayID]
}

// ByPrefix finds a relay by the public part of its key.
func (s *Relays) ByPrefix(prefix string) (*Relay, bool) { return s.lookup(s.byPrefix.at(prefix)) }

// ByName finds a relay by its name. It reads all relays.
func (s *Relays) ByName(name string) (*Relay, bool) {
	for r := range s.All() {
		if r.Name == name {
			return r, true
		}
	}
	return nil, false
}

// Region is the code and the name of a relay's region.
type Region struct{ Code, Name string }

// Regions returns the regions that clients know, by number.
func (s *Snapshot) Regions() map[int]Region {
	all := OtherRegions(s)
	for r := range s.Relays.All() {
		if r.Offered() {
			all[r.Region] = Region{r.RegionCode, r.RegionName}
		}
	}
	return all
}

// OtherRegions returns the regions of embedded relays and those that were read from URLs
// and files, by number.
func OtherRegions(s *Snapshot) map[int]Region {
	type region struct{ RegionCode, RegionName string }
	elsewhere, embedded := s.RelaySettings()
	var whole struct{ Regions map[int]region }
	_ = json.Unmarshal([]byte(elsewhere), &whole) // relays that cannot be parsed have no names
	all := map[int]Region{}
	for id, r := range whole.Regions {
		all[id] = Region{r.RegionCode, r.RegionName}
	}
	for number, relay := range embedded {
		var r region
		id, err := strconv.Atoi(number)
		if err == nil && json.Unmarshal(relay.Region, &r) == nil {
			all[id] = Region{r.RegionCode, r.RegionName}
		}
	}
	return all
}
