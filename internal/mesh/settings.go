package mesh

import (
	"encoding/json"
	"iter"
	"net/netip"
	"strconv"
	"strings"
)

// Setting is one value that clients are told, or one secret that replicas
// share. Value is JSON.
type Setting struct {
	ID     SettingID `json:"id"`
	Key    string    `json:"key"`
	Value  string    `json:"value"`
	Source string    `json:"source"` // config, api or replica
	// Pinned says that the configuration holds the value fast.
	Pinned    bool `json:"pinned,omitempty"`
	UpdatedAt Time `json:"updatedAt"`
}

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
	keep(d.e, &d.s.settings, &d.s.settingByKey, id, v, func(v *Setting) string { return v.Key })
	d.s.SettingsRev = d.s.Rev
}

// Setting returns the setting with this key.
func (s *Snapshot) Setting(key string) (*Setting, bool) {
	id, ok := s.settingByKey.at(key)
	if !ok {
		return nil, false
	}
	return found(s.settings.at(int64(id)))
}

// Settings yields all settings in the order of their ids.
func (s *Snapshot) Settings() iter.Seq[*Setting] { return s.settings.all() }

// The keys of settings.
const (
	// SettingDNS holds a DNS.
	SettingDNS = "dns"
	// SettingRelays holds the relay map that was read from URLs and files, in
	// the form of the clients.
	SettingRelays = "relays"
	// SettingRelay and a region's number hold a Relay: the region of one
	// replica's embedded relay.
	SettingRelay = "relay/"
	// SettingNoise holds the key by which clients know the service.
	SettingNoise = "secret/noise"
)

// DNS is what clients are told about names.
type DNS struct {
	MagicDNS bool `json:"magicDNS"`
	// BaseDomain is lower case, without a dot at either end; it may be empty
	// only when MagicDNS is off.
	BaseDomain    string              `json:"baseDomain,omitempty"`
	Nameservers   []string            `json:"nameservers,omitempty"`
	Split         map[string][]string `json:"split,omitempty"`
	SearchDomains []string            `json:"searchDomains,omitempty"`
	ExtraRecords  []DNSRecord         `json:"extraRecords,omitempty"`
}

// DNSRecord is one name that clients answer by themselves.
type DNSRecord struct {
	Name  string     `json:"name"`
	Type  string     `json:"type"` // A or AAAA
	Value netip.Addr `json:"value"`
}

// Relay is the embedded relay of one replica.
type Relay struct {
	Replica string `json:"replica"`
	// Region is in the form of the clients.
	Region json.RawMessage `json:"region"`
}

// DNS returns the setting of that name. A value that cannot be read counts as
// unset: it must not cost anybody the map.
func (s *Snapshot) DNS() DNS { return settingOf[DNS](s, SettingDNS) }

// Relays returns the relay map from elsewhere and the embedded relays by the
// number of their region, both in the form of the clients.
func (s *Snapshot) Relays() (elsewhere string, embedded map[string]Relay) {
	embedded = map[string]Relay{}
	for v := range s.Settings() {
		if region, ok := strings.CutPrefix(v.Key, SettingRelay); ok {
			embedded[region] = settingOf[Relay](s, v.Key)
		}
	}
	if v, ok := s.Setting(SettingRelays); ok {
		elsewhere = v.Value
	}
	return elsewhere, embedded
}

// Region is what people call a relay.
type Region struct{ Code, Name string }

// Regions returns the relays that clients are told of, by their numbers.
func (s *Snapshot) Regions() map[int]Region {
	type region struct{ RegionCode, RegionName string }
	elsewhere, embedded := s.Relays()
	var whole struct{ Regions map[int]region }
	_ = json.Unmarshal([]byte(elsewhere), &whole) // what cannot be read has no names
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

func settingOf[T any](s *Snapshot, key string) (value T) {
	v, ok := s.Setting(key)
	if !ok {
		return value
	}
	if err := json.Unmarshal([]byte(v.Value), &value); err != nil {
		var unset T
		return unset
	}
	return value
}

// SettingPutFor returns the event that gives a setting a value, or nothing when
// it has it already.
func (s *Snapshot) SettingPutFor(key, value, source string, pinned bool, now Time) []Event {
	old, ok := s.Setting(key)
	if ok && old.Value == value && old.Source == source && old.Pinned == pinned {
		return nil
	}
	id := s.Counters.Setting + 1
	if ok {
		id = old.ID
	}
	return []Event{SettingPut{Setting: &Setting{ID: id, Key: key, Value: value, Source: source, Pinned: pinned, UpdatedAt: now}}}
}
