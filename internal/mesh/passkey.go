package mesh

// ProviderLocal is the Provider of users who sign in with a passkey, without an identity
// provider.
const ProviderLocal = "local"

// Passkey is the public part of a passkey with which a user signs in.
type Passkey struct {
	ID   PasskeyID `json:"id"`
	User UserID    `json:"user" column:"user_id"`
	// Credential is how browsers refer to the passkey, and PublicKey verifies its
	// signatures. Both are base64url.
	Credential string `json:"credential"`
	PublicKey  string `json:"publicKey"`
	// Syncable is set if its provider may copy the passkey to other devices.
	Syncable  bool `json:"syncable,omitempty"`
	CreatedAt Time `json:"createdAt"`
	// LastUse is the last sign-in, and Uses the number of signatures that the passkey
	// reported then. Most passkeys report zero.
	LastUse Time  `json:"lastUse,omitempty"`
	Uses    int64 `json:"uses,omitempty"`
}

// PasskeyPut adds or replaces a passkey.
type PasskeyPut struct {
	Passkey *Passkey `json:"passkey"`
}

// Kind names the event in the log.
func (PasskeyPut) Kind() Kind          { return KindPasskeyPut }
func (e PasskeyPut) valid() bool       { return e.Passkey != nil && valid(e.Passkey.ID) }
func (e PasskeyPut) count(c *Counters) { c.Passkey = max(c.Passkey, e.Passkey.ID) }
func (e PasskeyPut) apply(d *Draft) {
	keep(d.e, &d.s.Passkeys.Table, &d.s.Passkeys.byCredential, e.Passkey.ID, e.Passkey, credentialOf)
}

// PasskeyGone removes a passkey.
type PasskeyGone struct {
	ID PasskeyID `json:"id"`
}

// Kind names the event in the log.
func (PasskeyGone) Kind() Kind    { return KindPasskeyGone }
func (e PasskeyGone) valid() bool { return valid(e.ID) }
func (e PasskeyGone) apply(d *Draft) {
	keep(d.e, &d.s.Passkeys.Table, &d.s.Passkeys.byCredential, e.ID, nil, credentialOf)
}

func credentialOf(k *Passkey) string { return k.Credential }

// Passkeys holds all passkeys of a snapshot.
type Passkeys struct {
	Table[PasskeyID, Passkey]
	byCredential index[string, PasskeyID]
}

// ByCredential finds a passkey by its Credential.
func (s *Passkeys) ByCredential(id string) (*Passkey, bool) {
	return s.lookup(s.byCredential.at(id))
}

// Of returns the passkeys of a user. It reads all passkeys.
func (s *Passkeys) Of(user UserID) (of []*Passkey) {
	for k := range s.All() {
		if k.User == user {
			of = append(of, k)
		}
	}
	return of
}

// Invitation lets its holder create one passkey for a user. Prefix is its public part.
type Invitation struct {
	ID     InvitationID `json:"id"`
	Prefix string       `json:"prefix"`
	Hash   Secret       `json:"hash"`
	User   UserID       `json:"user" column:"user_id"`
	// Recovery is set for the code that a person keeps in case all passkeys are lost. The
	// new passkey then replaces the others.
	Recovery  bool `json:"recovery,omitempty"`
	CreatedAt Time `json:"createdAt"`
	// Expiry is zero for recovery codes, which do not expire.
	Expiry Time `json:"expiry,omitempty"`
}

// InvitationPut adds or replaces an invitation.
type InvitationPut struct {
	Invitation *Invitation `json:"invitation"`
}

// Kind names the event in the log.
func (InvitationPut) Kind() Kind          { return KindInvitationPut }
func (e InvitationPut) valid() bool       { return e.Invitation != nil && valid(e.Invitation.ID) }
func (e InvitationPut) count(c *Counters) { c.Invitation = max(c.Invitation, e.Invitation.ID) }
func (e InvitationPut) apply(d *Draft) {
	keep(d.e, &d.s.Invitations.Table, &d.s.Invitations.byPrefix, e.Invitation.ID, e.Invitation, invitationPrefix)
}

// InvitationGone removes an invitation that was used, has expired or was replaced.
type InvitationGone struct {
	ID InvitationID `json:"id"`
}

// Kind names the event in the log.
func (InvitationGone) Kind() Kind    { return KindInvitationGone }
func (e InvitationGone) valid() bool { return valid(e.ID) }
func (e InvitationGone) apply(d *Draft) {
	keep(d.e, &d.s.Invitations.Table, &d.s.Invitations.byPrefix, e.ID, nil, invitationPrefix)
}

func invitationPrefix(i *Invitation) string { return i.Prefix }

// Invitations holds all invitations and recovery codes of a snapshot.
type Invitations struct {
	Table[InvitationID, Invitation]
	byPrefix index[string, InvitationID]
}

// ByPrefix finds an invitation by its public part.
func (s *Invitations) ByPrefix(prefix string) (*Invitation, bool) {
	return s.lookup(s.byPrefix.at(prefix))
}
