package mesh

// Recheck is how the server asks an identity provider whether a person still has an account
// there. Its ID is that of the user, so that a user has one at most.
type Recheck struct {
	ID     UserID `json:"id"`
	Issuer string `json:"issuer"`
	// Token is the refresh token of the newest sign-in, sealed.
	Token string `json:"token"`
	// Due is when the provider is asked next.
	Due Time `json:"due"`
	// Claim identifies the request to the provider that is in progress, if any. Nobody else
	// may use the token, because with many providers it works only once.
	Claim     string `json:"claim,omitempty"`
	ClaimedAt Time   `json:"claimedAt,omitempty"`
	// Doubt means that nobody knows how an earlier request ended. The token may have been
	// used up, so that a refusal says nothing about the account.
	Doubt bool `json:"doubt,omitempty"`
	// Refused means that the provider has refused the token, and an administrator may have
	// overruled it. A further refusal does not suspend the user again.
	Refused bool `json:"refused,omitempty"`
	// Cause is why the provider is asked at Due; empty if it is simply time.
	Cause SuspensionSource `json:"cause,omitempty"`
	// ConfirmedAt is when the provider last confirmed the account.
	ConfirmedAt Time `json:"confirmedAt"`
	// FailingSince is when the provider first gave no useful answer, or zero if its last
	// answer was useful.
	FailingSince Time `json:"failingSince,omitempty"`
	// ProviderSession is as in Session, of the newest sign-in.
	ProviderSession string `json:"providerSession,omitempty"`
}

// RecheckPut adds or replaces a recheck.
type RecheckPut struct {
	Recheck *Recheck `json:"recheck"`
}

// Kind names the event in the log.
func (RecheckPut) Kind() Kind       { return KindRecheckPut }
func (e RecheckPut) valid() bool    { return e.Recheck != nil && valid(e.Recheck.ID) }
func (e RecheckPut) apply(d *Draft) { d.s.Rechecks.put(d.e, e.Recheck.ID, e.Recheck) }

// RecheckGone removes a recheck: the provider is not asked again until the person signs in.
type RecheckGone struct {
	ID UserID `json:"id"`
}

// Kind names the event in the log.
func (RecheckGone) Kind() Kind       { return KindRecheckGone }
func (e RecheckGone) valid() bool    { return valid(e.ID) }
func (e RecheckGone) apply(d *Draft) { d.s.Rechecks.put(d.e, e.ID, nil) }
