package control

import (
	"context"
	"crypto/rand"
	"errors"
	"strconv"
	"strings"
	"time"

	"github.com/fairlead-mesh/fairlead/internal/identity"
	"github.com/fairlead-mesh/fairlead/internal/ledger"
	"github.com/fairlead-mesh/fairlead/internal/mesh"
	"github.com/fairlead-mesh/fairlead/internal/policy"
)

const (
	// DeviceSignInLifetime is how long a person may take to sign in on another device.
	DeviceSignInLifetime = 10 * time.Minute
	devicePurpose        = "device sign-in"
)

// DeviceSignIn is the request of a command line on a computer without a browser. It is kept
// only in a sealed token, so that strangers can store nothing.
type DeviceSignIn struct {
	ID          string    `json:"i"`
	Challenge   string    `json:"h"`
	Description string    `json:"d,omitempty"`
	At          mesh.Time `json:"t"`
	Network     string    `json:"n,omitempty"` // of the command line
}

// StartDevice returns the token of a new request, which comes from addr. People compare its
// code, see identity.Code.
func (s *Sessions) StartDevice(addr, challenge, description string) (string, error) {
	if !CheckChallenge(challenge) {
		return "", refuse(Invalid, "challenge", "challenge must be a SHA-256 in base64url without padding")
	}
	token, ok := s.sealer.SealCookie(devicePurpose, DeviceSignIn{
		ID: rand.Text(), Challenge: challenge, Description: CleanDescription(description), At: s.ledger.Now(), Network: identity.Network(addr),
	})
	if !ok {
		return "", refuse(Invalid, "description", "description is too long")
	}
	return token, nil
}

// OpenDevice returns the request of a token, if it has not expired.
func (s *Sessions) OpenDevice(token string) (d DeviceSignIn, ok bool) {
	ok = s.sealer != nil && s.sealer.OpenCookie(devicePurpose, token, &d) && !d.At.Add(DeviceSignInLifetime).Reached(s.ledger.Now())
	return d, ok
}

// once counts against the network of the command line, because that also looks for the
// receipt, and does not know who approves.
func (d DeviceSignIn) once() *mesh.Once { return mesh.SignInOnce("device "+d.Network, d.ID, d.ID) }

// deviceApproval is the result of an approval: the receipt contains the user.
type deviceApproval struct {
	user *mesh.User
	at   string
}

// Answer returns the user's id, and the account and the ProviderSession with which the user confirmed.
func (a deviceApproval) Answer() string {
	return strings.TrimSpace(a.user.ID.String() + " " + accountMark(a.user) + " " + a.at)
}

// ApproveDevice lets the command line that made a request act for a user. Only the first
// approval of a request counts. at is as in Code.
func (s *Sessions) ApproveDevice(ctx context.Context, a mesh.Actor, token string, u *mesh.User, at string) error {
	d, ok := s.OpenDevice(token)
	if !ok {
		return errCode()
	}
	if err := mayHaveSessions(u); err != nil {
		return err
	}
	a = PersonActor(a, u)
	a.Once = d.once()
	_, err := commit(ctx, s.core, a, func(*policy.World, mesh.Time) (deviceApproval, []mesh.Event, error) {
		return deviceApproval{u, at}, nil, nil
	})
	if done := (*ledger.AlreadyDone)(nil); errors.As(err, &done) {
		return refuse(Conflict, "", "this sign-in was already confirmed; if you did not confirm it, run fairlead login --device again")
	}
	if err == nil {
		s.logFor(a).Info("sign-in on another device confirmed", "user", u.Name, "code", identity.Code(token))
	}
	return err
}

// PollDevice returns the session of a request, once a person has confirmed it. The session is
// nil while nobody has.
func (s *Sessions) PollDevice(ctx context.Context, a mesh.Actor, token, verifier string) (*mesh.Session, string, error) {
	d, ok := s.OpenDevice(token)
	if !ok || !proves(verifier, d.Challenge) {
		return nil, "", errCode()
	}
	receipt, ok := s.ledger.World().Receipts.For(d.once())
	if !ok {
		return nil, "", nil
	}
	id, rest, _ := strings.Cut(receipt.Answer, " ")
	account, at, _ := strings.Cut(rest, " ")
	user, err := strconv.ParseInt(id, 10, 64)
	if err != nil {
		return nil, "", err
	}
	return s.redeem(ctx, a, sessionCode{
		SessionRequest: SessionRequest{Client: mesh.SessionCLI, Description: d.Description}, ID: devicePurpose + " " + d.ID, User: mesh.UserID(user), Account: account, At: d.At, ProviderSession: at,
	})
}
