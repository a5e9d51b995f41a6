package mesh

import (
	"encoding/json"
	"net/netip"
	"slices"
	"strings"

	"tailscale.com/types/key"
)

// Setting is a value that clients receive, or a secret that replicas share. Value is
// JSON.
type Setting struct {
	ID     SettingID `json:"id"`
	Key    string    `json:"key"`
	Value  string    `json:"value"`
	Source string    `json:"source"` // config, api or replica
	// Pinned means that the configuration file locks the value.
	Pinned    bool `json:"pinned,omitempty"`
	UpdatedAt Time `json:"updatedAt"`
}

// SourceAPI is the Source of what was set through the API, and not in the configuration.
const SourceAPI = "api"

// SettingPut adds or replaces a setting.
type SettingPut struct {
	Setting *Setting `json:"setting"`
}

// Kind names the event in the log.
func (SettingPut) Kind() Kind          { return KindSettingPut }
func (e SettingPut) valid() bool       { return e.Setting != nil && valid(e.Setting.ID) }
func (e SettingPut) count(c *Counters) { c.Setting = max(c.Setting, e.Setting.ID) }
func (e SettingPut) apply(d *Draft)    { d.putSetting(e.Setting.ID, e.Setting) }

// SettingGone removes a setting.
type SettingGone struct {
	ID SettingID `json:"id"`
}

// Kind names the event in the log.
func (SettingGone) Kind() Kind       { return KindSettingGone }
func (e SettingGone) valid() bool    { return valid(e.ID) }
func (e SettingGone) apply(d *Draft) { d.putSetting(e.ID, nil) }

func (d *Draft) putSetting(id SettingID, v *Setting) {
	keep(d.e, &d.s.Settings.Table, &d.s.Settings.byKey, id, v, func(v *Setting) string { return v.Key })
	d.s.SettingsRev = d.s.Rev
}

// Settings holds all settings of a snapshot.
type Settings struct {
	Table[SettingID, Setting]
	byKey index[string, SettingID]
}

// ByKey returns the setting with this key.
func (s *Settings) ByKey(key string) (*Setting, bool) {
	return s.lookup(s.byKey.at(key))
}

// The keys of settings.
const (
	// SettingDNS is the key of the DNS configuration, which is a DNS.
	SettingDNS = "dns"
	// SettingRecords is the key of the DNS records that were read from a file, which are a list
	// of DNSRecord.
	SettingRecords = "dns-records"
	// SettingClients is the key of what the configuration allows or asks of clients, which is
	// a Clients.
	SettingClients = "clients"
	// SettingRelays is the key of the relay map that was read from URLs and files, in the
	// clients' format.
	SettingRelays = "relays"
	// SettingRelay followed by a region number is the key of an EmbeddedRelay: the region of one
	// replica's embedded relay.
	SettingRelay = "relay/"
	// SettingNoise is the key of the setting with the Noise key, by which clients
	// recognize the server. It is a NoiseKey.
	SettingNoise = "secret/noise"
	// SettingSecrets is the key of the setting with the secrets from which other keys are derived, encrypted.
	SettingSecrets = "secret/server"
	// SettingImport is the key of the record of the last import from another server.
	SettingImport = "import"
)

// DNS is the DNS configuration of clients.
type DNS struct {
	MagicDNS bool `json:"magicDNS"`
	// BaseDomain is lower case, without a dot at either end; it may be empty
	// only when MagicDNS is off.
	BaseDomain  string   `json:"baseDomain,omitempty"`
	Nameservers []string `json:"nameservers,omitempty"`
	// KeepLocal means that devices keep their own nameservers, and use Nameservers only if
	// they cannot combine their own with the other settings.
	KeepLocal     bool                `json:"keepLocal,omitempty"`
	Split         map[string][]string `json:"split,omitempty"`
	SearchDomains []string            `json:"searchDomains,omitempty"`
	ExtraRecords  []DNSRecord         `json:"extraRecords,omitempty"`
}

// DNSRecord is an extra record that clients resolve themselves.
type DNSRecord struct {
	Name  string     `json:"name"`
	Type  string     `json:"type"` // A or AAAA
	Value netip.Addr `json:"value"`
}

// Clients is what the configuration allows or asks of all clients.
type Clients struct {
	NoTaildrop bool `json:"noTaildrop,omitempty"` // they cannot send or receive files
	RandomPort bool `json:"randomPort,omitempty"` // they use a random UDP port
	CacheMaps  bool `json:"cacheMaps,omitempty"`  // they store their map, and start with it
	// ServerAddrs are the addresses at which they reach the server without DNS.
	ServerAddrs []netip.Addr `json:"serverAddrs,omitempty"`
}

// Equal reports whether both have the same effect.
func (c Clients) Equal(d Clients) bool {
	return c.NoTaildrop == d.NoTaildrop && c.RandomPort == d.RandomPort && c.CacheMaps == d.CacheMaps && slices.Equal(c.ServerAddrs, d.ServerAddrs)
}

// EmbeddedRelay is the relay inside one replica.
type EmbeddedRelay struct {
	Replica string `json:"replica"`
	// Region is in the clients' format.
	Region json.RawMessage `json:"region"`
}

// NoiseKey is the record of the key by which clients recognize the server.
type NoiseKey struct {
	Public key.MachinePublic `json:"public"`
	// Sealed is the private key, encrypted with secrets_key_file, if the server has that.
	Sealed []byte `json:"sealed,omitempty"`
	// Number identifies the key; see Generation.
	Number int `json:"number,omitempty"`
	// Previous is the key before, as long as it is still accepted, and RotatedAt is when it was replaced.
	Previous  *PreviousNoiseKey `json:"previous,omitempty"`
	RotatedAt Time              `json:"rotatedAt,omitempty"`
	// ByPrevious is the private key, encrypted with the previous one, for replicas without secrets_key_file.
	ByPrevious []byte `json:"byPrevious,omitempty"`
	// Retired are the last keys that are no longer accepted, the newest first.
	Retired []key.MachinePublic `json:"retired,omitempty"`
}

// PreviousNoiseKey is a key that is still accepted after it was replaced.
type PreviousNoiseKey struct {
	Public key.MachinePublic `json:"public"`
	// Sealed is the private key, encrypted with secrets_key_file, if the server has that.
	Sealed []byte `json:"sealed,omitempty"`
	// ByNext is the private key, encrypted with the next one, for replicas without secrets_key_file.
	ByNext []byte `json:"byNext,omitempty"`
}

// Generation returns the number of the key: the first has number 1, and each replacement adds the next.
func (k NoiseKey) Generation() int { return max(k.Number, 1) }

// NoiseKeyOf returns the record of the Noise key. It is zero if there is none.
func NoiseKeyOf(s *Snapshot) NoiseKey { return settingOf[NoiseKey](s, SettingNoise) }

// DNS returns the DNS configuration. A value that cannot be parsed counts as unset,
// so that clients still get their maps.
func (s *Snapshot) DNS() DNS { return settingOf[DNS](s, SettingDNS) }

// FileRecords returns the DNS records that were read from a file.
func (s *Snapshot) FileRecords() []DNSRecord { return settingOf[[]DNSRecord](s, SettingRecords) }

// Clients returns what the configuration allows or asks of clients.
func (s *Snapshot) Clients() Clients { return settingOf[Clients](s, SettingClients) }

// RelaySettings returns the relay map that was read from URLs and files, and the embedded
// relays by region number, both in the clients' format.
func (s *Snapshot) RelaySettings() (elsewhere string, embedded map[string]EmbeddedRelay) {
	embedded = map[string]EmbeddedRelay{}
	for v := range s.Settings.All() {
		if region, ok := strings.CutPrefix(v.Key, SettingRelay); ok {
			embedded[region] = settingOf[EmbeddedRelay](s, v.Key)
		}
	}
	if v, ok := s.Settings.ByKey(SettingRelays); ok {
		elsewhere = v.Value
	}
	return elsewhere, embedded
}

func settingOf[T any](s *Snapshot, key string) (value T) {
	v, ok := s.Settings.ByKey(key)
	if !ok {
		return value
	}
	if err := json.Unmarshal([]byte(v.Value), &value); err != nil {
		var unset T
		return unset
	}
	return value
}

// SettingPutFor returns the event that sets a setting, or none if it already has that
// value.
func (s *Snapshot) SettingPutFor(key, value, source string, pinned bool, now Time) []Event {
	old, ok := s.Settings.ByKey(key)
	if ok && old.Value == value && old.Source == source && old.Pinned == pinned {
		return nil
	}
	id := s.Counters.Setting + 1
	if ok {
		id = old.ID
	}
	return []Event{SettingPut{Setting: &Setting{ID: id, Key: key, Value: value, Source: source, Pinned: pinned, UpdatedAt: now}}}
}
