// Package passkey lets people sign in with a passkey (WebAuthn), without an identity provider. It builds the options for
// the browser, and verifies what the browser sends back.
//
// It knows nothing about users, invitations, devices, cookies or pages, and keeps no state: the caller keeps a State between
// the two steps, and stores the Credential.
package passkey

import (
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"net/netip"
	"net/url"
	"strings"

	"github.com/go-webauthn/webauthn/protocol"
	"github.com/go-webauthn/webauthn/webauthn"
)

// MaxResponse limits what a browser sends. The largest part is the attestation, which is not requested.
const MaxResponse = 16 << 10

// Errors of this package.
var (
	// ErrInsecure is returned by New for a URL on which browsers offer no passkeys.
	ErrInsecure = errors.New("passkeys require a server_url that begins with https:// and contains a host name")
	// ErrRefused is returned for a response that is not valid. The reason is wrapped.
	ErrRefused = errors.New("the passkey is not valid here")
)

// Verifier verifies passkeys for one server.
type Verifier struct{ party *webauthn.WebAuthn }

// New returns a verifier for the server at this URL.
func New(serverURL string) (*Verifier, error) {
	u, err := url.Parse(serverURL)
	if err != nil {
		return nil, ErrInsecure
	}
	host := u.Hostname()
	if _, err := netip.ParseAddr(host); err == nil || host == "" || u.Scheme != "https" && host != "localhost" {
		return nil, ErrInsecure
	}
	party, err := webauthn.New(&webauthn.Config{
		RPID: host, RPDisplayName: host, RPOrigins: []string{u.Scheme + "://" + u.Host},
		AttestationPreference: protocol.PreferNoAttestation,
		// Discoverable, so that people need not type a user name. Verified, because a passkey is the only factor.
		AuthenticatorSelection: protocol.AuthenticatorSelection{
			ResidentKey: protocol.ResidentKeyRequirementRequired, UserVerification: protocol.VerificationRequired,
		},
	})
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrInsecure, err)
	}
	return &Verifier{party}, nil
}

// Account is who owns passkeys. Handle identifies the account and is stored in each passkey.
type Account struct {
	Handle      string
	Name        string
	DisplayName string
	Credentials []Credential
}

// Credential is the public part of a passkey.
type Credential struct {
	ID        string // base64url
	PublicKey []byte
	// Syncable is set for a passkey that its provider may copy to other devices.
	Syncable bool
	// Uses counts signatures. It stays zero for most passkeys.
	Uses uint32
}

// State is what has to be kept between the two steps. It must not be readable or changeable by the browser's scripts, and is
// valid once.
type State struct {
	Challenge string `json:"c"`
	Handle    string `json:"h,omitempty"`
}

// BeginCreate returns the options with which a browser creates a passkey, as JSON.
func (v *Verifier) BeginCreate(a Account) (options string, s State, err error) {
	user := owner(a)
	var have []protocol.CredentialDescriptor
	for _, c := range user.WebAuthnCredentials() {
		have = append(have, c.Descriptor())
	}
	creation, session, err := v.party.BeginRegistration(user, webauthn.WithExclusions(have))
	if err != nil {
		return "", State{}, err
	}
	text, err := json.Marshal(creation.Response)
	return string(text), State{Challenge: session.Challenge, Handle: a.Handle}, err
}

// FinishCreate verifies a passkey that a browser created.
func (v *Verifier) FinishCreate(s State, a Account, response string) (Credential, error) {
	parsed, err := protocol.ParseCredentialCreationResponseBytes([]byte(response))
	if err != nil {
		return Credential{}, refused(err)
	}
	if a.Handle != s.Handle {
		return Credential{}, fmt.Errorf("%w: it was created for another user", ErrRefused)
	}
	c, err := v.party.CreateCredential(owner(a), webauthn.SessionData{
		Challenge: s.Challenge, UserID: []byte(s.Handle), UserVerification: protocol.VerificationRequired, CredParams: webauthn.CredentialParametersDefault(),
	}, parsed)
	if err != nil {
		return Credential{}, refused(err)
	}
	return Credential{ID: text(c.ID), PublicKey: c.PublicKey, Syncable: c.Flags.BackupEligible, Uses: c.Authenticator.SignCount}, nil
}

// BeginSignIn returns the options with which a browser asks the person for a passkey, as JSON.
func (v *Verifier) BeginSignIn() (options string, s State, err error) {
	assertion, session, err := v.party.BeginDiscoverableLogin()
	if err != nil {
		return "", State{}, err
	}
	text, err := json.Marshal(assertion.Response)
	return string(text), State{Challenge: session.Challenge}, err
}

// FinishSignIn verifies that a browser has used a passkey, and returns it with its new number of uses. find returns the
// account that owns a credential.
func (v *Verifier) FinishSignIn(s State, response string, find func(id string) (Account, bool)) (Credential, error) {
	parsed, err := protocol.ParseCredentialRequestResponseBytes([]byte(response))
	if err != nil {
		return Credential{}, refused(err)
	}
	c, err := v.party.ValidateDiscoverableLogin(func(id, _ []byte) (webauthn.User, error) {
		a, ok := find(text(id))
		if !ok {
			return nil, errors.New("unknown passkey")
		}
		return owner(a), nil
	}, webauthn.SessionData{Challenge: s.Challenge, UserVerification: protocol.VerificationRequired}, parsed)
	if err != nil {
		return Credential{}, refused(err)
	}
	if c.Authenticator.CloneWarning {
		return Credential{}, fmt.Errorf("%w: it has been copied", ErrRefused)
	}
	return Credential{ID: text(c.ID), PublicKey: c.PublicKey, Syncable: c.Flags.BackupEligible, Uses: c.Authenticator.SignCount}, nil
}

// refused wraps an error of the library, whose details are not for people.
func refused(err error) error {
	reason := err.Error()
	if known := new(protocol.Error); errors.As(err, &known) {
		reason = known.Details
	}
	return fmt.Errorf("%w: %s", ErrRefused, strings.Join(strings.Fields(reason), " "))
}

func text(id []byte) string { return base64.RawURLEncoding.EncodeToString(id) }

// owner is an Account in the form that the library uses.
type owner Account

// WebAuthnID implements webauthn.User.
func (a owner) WebAuthnID() []byte { return []byte(a.Handle) }

// WebAuthnName implements webauthn.User.
func (a owner) WebAuthnName() string { return a.Name }

// WebAuthnDisplayName implements webauthn.User.
func (a owner) WebAuthnDisplayName() string { return a.DisplayName }

// WebAuthnCredentials implements webauthn.User.
func (a owner) WebAuthnCredentials() (all []webauthn.Credential) {
	for _, c := range a.Credentials {
		id, err := base64.RawURLEncoding.DecodeString(c.ID)
		if err != nil {
			continue // nothing that a browser sends can match it
		}
		all = append(all, webauthn.Credential{
			ID: id, PublicKey: c.PublicKey, Flags: webauthn.CredentialFlags{UserPresent: true, UserVerified: true, BackupEligible: c.Syncable},
			Authenticator: webauthn.Authenticator{SignCount: c.Uses},
		})
	}
	return all
}
