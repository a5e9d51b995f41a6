package mesh

import (
	"encoding/hex"
	"encoding/json"
	"errors"
)

// Secret is the SHA-256 of a secret value, which itself is not stored.
type Secret [32]byte

// MarshalText returns the hexadecimal form.
func (s Secret) MarshalText() ([]byte, error) { return hex.AppendEncode(nil, s[:]), nil }

// UnmarshalText reads the hexadecimal form.
func (s *Secret) UnmarshalText(text []byte) error {
	if len(text) != 2*len(s) {
		return errors.New("the hash of a secret must have 64 hexadecimal digits")
	}
	_, err := hex.Decode(s[:], text)
	return err
}

// Bcrypt is the bcrypt hash of the secret of a key that was imported from another server. The
// first valid use of the key replaces it with a Secret, or adds the Secret while people may
// still go back to that server. It is empty for all other keys.
type Bcrypt string

// KeyUse is when, and from where, a key was last used.
type KeyUse struct {
	At   Time   `json:"at"`
	From string `json:"from,omitempty" column:"addr"` // an address
}

// PreAuthKeyUse is the last use of a pre-auth key.
type PreAuthKeyUse struct {
	KeyUse
	// Count is how many nodes have joined with the key.
	Count int64 `json:"count,omitempty"`
}

// PreAuthKey is a key with which nodes join. Prefix is its public part.
type PreAuthKey struct {
	ID        KeyID    `json:"id"`
	Prefix    string   `json:"prefix"`
	Hash      Secret   `json:"hash"`
	Bcrypt    Bcrypt   `json:"bcrypt,omitempty"`
	User      UserID   `json:"user,omitempty" column:"user_id"`
	Reusable  bool     `json:"reusable,omitempty"`
	Ephemeral bool     `json:"ephemeral,omitempty"`
	Tags      []string `json:"tags,omitempty"`
	// PreApproved means that nodes that join with the key need no approval.
	PreApproved bool `json:"preApproved,omitempty"`
	// Description says what the key is for.
	Description string `json:"description,omitempty"`
	// Used is set when the first node joins, even if the key is reusable.
	Used      bool `json:"used,omitempty"`
	Expiry    Time `json:"expiry"`
	CreatedAt Time `json:"createdAt"`

	// LastUse has events of its own. PreAuthKeyPut does not change it.
	LastUse PreAuthKeyUse `json:"-"`
}

// PreAuthKeyPut adds or replaces a pre-auth key, except its LastUse.
type PreAuthKeyPut struct {
	Key *PreAuthKey `json:"key"`
}

// Kind names the event in the log.
func (PreAuthKeyPut) Kind() Kind          { return KindPreAuthKeyPut }
func (e PreAuthKeyPut) valid() bool       { return e.Key != nil && valid(e.Key.ID) }
func (e PreAuthKeyPut) count(c *Counters) { c.PreAuth = max(c.PreAuth, e.Key.ID) }
func (e PreAuthKeyPut) apply(d *Draft) {
	k := *e.Key
	k.LastUse = PreAuthKeyUse{}
	if old, ok := d.s.PreAuthKeys.Get(k.ID); ok {
		k.LastUse = old.LastUse
	}
	keep(d.e, &d.s.PreAuthKeys.Table, &d.s.PreAuthKeys.byPrefix, k.ID, &k, preAuthPrefix)
}

// PreAuthKeyGone removes a pre-auth key.
type PreAuthKeyGone struct {
	ID KeyID `json:"id"`
}

// Kind names the event in the log.
func (PreAuthKeyGone) Kind() Kind    { return KindPreAuthKeyGone }
func (e PreAuthKeyGone) valid() bool { return valid(e.ID) }
func (e PreAuthKeyGone) apply(d *Draft) {
	keep(d.e, &d.s.PreAuthKeys.Table, &d.s.PreAuthKeys.byPrefix, e.ID, nil, preAuthPrefix)
}

// PreAuthKeyUsed records that a node joined with a pre-auth key.
type PreAuthKeyUsed struct {
	ID  KeyID         `json:"id"`
	Use PreAuthKeyUse `json:"use"`
}

// Kind names the event in the log.
func (PreAuthKeyUsed) Kind() Kind    { return KindPreAuthKeyUsed }
func (e PreAuthKeyUsed) valid() bool { return valid(e.ID) }
func (e PreAuthKeyUsed) apply(d *Draft) {
	change(d.e, &d.s.PreAuthKeys.Table, e.ID, func(k *PreAuthKey) { k.LastUse = e.Use })
}

func preAuthPrefix(k *PreAuthKey) string { return k.Prefix }

// PreAuthKeys holds all pre-auth keys of a snapshot.
type PreAuthKeys struct {
	Table[KeyID, PreAuthKey]
	byPrefix index[string, KeyID]
}

// ByPrefix finds a pre-auth key by its public part.
func (s *PreAuthKeys) ByPrefix(prefix string) (*PreAuthKey, bool) {
	return s.lookup(s.byPrefix.at(prefix))
}

// APIKey gives access to the API. Prefix is its public part.
type APIKey struct {
	ID     KeyID  `json:"id"`
	Prefix string `json:"prefix"`
	Hash   Secret `json:"hash"`
	Bcrypt Bcrypt `json:"bcrypt,omitempty"`
	Access
	// User is the person who created the key, or zero. The key never allows more than this
	// person may do.
	User UserID `json:"user,omitempty" column:"user_id"`
	// Comment says what the key is for.
	Comment   string `json:"comment,omitempty"`
	Expiry    Time   `json:"expiry"`
	CreatedAt Time   `json:"createdAt"`

	// LastUse has events of its own. APIKeyPut does not change it.
	LastUse KeyUse `json:"-"`
}

// APIKeyPut adds or replaces an API key, except its LastUse.
type APIKeyPut struct {
	Key *APIKey `json:"key"`
}

// UnmarshalJSON gives keys from before roles existed the role admin, as the migration of
// the tables did.
func (e *APIKeyPut) UnmarshalJSON(data []byte) error {
	type plain APIKeyPut
	if err := json.Unmarshal(data, (*plain)(e)); err != nil {
		return err
	}
	if e.Key != nil && e.Key.Role == "" {
		e.Key.Role = RoleAdmin
	}
	return nil
}

// Kind names the event in the log.
func (APIKeyPut) Kind() Kind          { return KindAPIKeyPut }
func (e APIKeyPut) valid() bool       { return e.Key != nil && valid(e.Key.ID) }
func (e APIKeyPut) count(c *Counters) { c.API = max(c.API, e.Key.ID) }
func (e APIKeyPut) apply(d *Draft) {
	k := *e.Key
	k.LastUse = KeyUse{}
	if old, ok := d.s.APIKeys.Get(k.ID); ok {
		k.LastUse = old.LastUse
	}
	keep(d.e, &d.s.APIKeys.Table, &d.s.APIKeys.byPrefix, k.ID, &k, apiPrefix)
}

// APIKeyGone removes an API key.
type APIKeyGone struct {
	ID KeyID `json:"id"`
}

// Kind names the event in the log.
func (APIKeyGone) Kind() Kind    { return KindAPIKeyGone }
func (e APIKeyGone) valid() bool { return valid(e.ID) }
func (e APIKeyGone) apply(d *Draft) {
	keep(d.e, &d.s.APIKeys.Table, &d.s.APIKeys.byPrefix, e.ID, nil, apiPrefix)
}

// APIKeyUsed records a use of an API key. Not every use becomes an event.
type APIKeyUsed struct {
	ID  KeyID  `json:"id"`
	Use KeyUse `json:"use"`
}

// Kind names the event in the log.
func (APIKeyUsed) Kind() Kind    { return KindAPIKeyUsed }
func (e APIKeyUsed) valid() bool { return valid(e.ID) }
func (e APIKeyUsed) apply(d *Draft) {
	change(d.e, &d.s.APIKeys.Table, e.ID, func(k *APIKey) { k.LastUse = e.Use })
}

func apiPrefix(k *APIKey) string { return k.Prefix }

// APIKeys holds all API keys of a snapshot.
type APIKeys struct {
	Table[KeyID, APIKey]
	byPrefix index[string, KeyID]
}

// ByPrefix finds an API key by its public part.
func (s *APIKeys) ByPrefix(prefix string) (*APIKey, bool) {
	return s.lookup(s.byPrefix.at(prefix))
}
