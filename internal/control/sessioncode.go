package control

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"regexp"
	"strings"
	"time"

	"github.com/fairlead-mesh/fairlead/internal/identity"
	"github.com/fairlead-mesh/fairlead/internal/ledger"
	"github.com/fairlead-mesh/fairlead/internal/mesh"
	"github.com/fairlead-mesh/fairlead/internal/policy"
)

const (
	// codeLifetime is how long a one-time code is valid. Programs exchange it at once.
	codeLifetime = time.Minute
	codePurpose  = "session code"
	minVerifier  = 43
	maxVerifier  = 128
)

// challengeForm matches a SHA-256 in base64url.
var challengeForm = regexp.MustCompile(`^[A-Za-z0-9_-]{43}$`)

// SessionRequest is what a program asks for when it sends a person to sign in.
type SessionRequest struct {
	Client      mesh.SessionClient `json:"c"`
	Description string             `json:"d,omitempty"`
	// Challenge is the SHA-256 of the verifier that only the program has.
	Challenge string `json:"h"`
	// ReturnURL is where the browser brings the one-time code.
	ReturnURL string `json:"r"`
}

// CheckChallenge reports whether a text can be the challenge of a SessionRequest.
func CheckChallenge(text string) bool { return challengeForm.MatchString(text) }

// CleanDescription returns a description as sessions can have it.
func CleanDescription(text string) string {
	text = strings.TrimSpace(cleanHostname(text))
	if len(text) > maxSessionText {
		text = strings.ToValidUTF8(text[:maxSessionText], "")
	}
	return text
}

// sessionCode is the content of a one-time code. Every replica can open it, and only the
// receipt of its use is stored.
type sessionCode struct {
	SessionRequest
	ID   string      `json:"i"`
	User mesh.UserID `json:"u"`
	// Account is the accountMark of the user. The code is not valid for another account.
	Account string    `json:"a"`
	At      mesh.Time `json:"t"`
	// ProviderSession is as in mesh.Session.
	ProviderSession string `json:"p,omitempty"`
}

// Code returns a one-time code with which the program gets a session of this user, who has signed in with a
// ProviderSession, or "".
func (s *Sessions) Code(u *mesh.User, at string, r SessionRequest) (string, error) {
	if err := mayHaveSessions(u); err != nil {
		return "", err
	}
	code, ok := s.sealer.SealCookie(codePurpose, sessionCode{SessionRequest: r, ID: rand.Text(), User: u.ID, Account: accountMark(u), At: s.ledger.Now(), ProviderSession: at})
	if !ok {
		return "", refuse(Invalid, "", "the address of the program is too long")
	}
	return code, nil
}

// accountMark identifies the account with which a user signs in.
func accountMark(u *mesh.User) string {
	sum := sha256.Sum256([]byte(u.Provider + "\n" + u.ProviderID))
	return hex.EncodeToString(sum[:8])
}

func errCode() error {
	return refuse(Invalid, "code", "the code is invalid, has expired or was already used; sign in again")
}

// Exchange creates the session for a one-time code. The caller proves with the verifier
// that it started the sign-in.
func (s *Sessions) Exchange(ctx context.Context, a mesh.Actor, code, verifier, returnURL string) (*mesh.Session, string, error) {
	var c sessionCode
	if s.sealer == nil || !s.sealer.OpenCookie(codePurpose, code, &c) || !proves(verifier, c.Challenge) || c.ReturnURL != returnURL ||
		c.At.Add(codeLifetime).Reached(s.ledger.Now()) {
		return nil, "", errCode()
	}
	return s.redeem(ctx, a, c)
}

// redeem creates the session of a code, once.
func (s *Sessions) redeem(ctx context.Context, a mesh.Actor, c sessionCode) (*mesh.Session, string, error) {
	u, ok := s.ledger.World().Users.Get(c.User)
	if !ok {
		if err := s.ledger.Sync(ctx); err != nil {
			return nil, "", errors.Join(ledger.ErrUnavailable, err)
		}
		if u, ok = s.ledger.World().Users.Get(c.User); !ok {
			return nil, "", errCode()
		}
	}
	a = PersonActor(a, u)
	a.Once = mesh.SignInOnce("session "+u.ID.String(), c.ID, c.ID)
	issued := identity.NewKey(identity.KindSession)
	session, err := commit(ctx, s.core, a, func(w *policy.World, now mesh.Time) (*mesh.Session, []mesh.Event, error) {
		if u, ok := w.Users.Get(c.User); ok && accountMark(u) != c.Account {
			return nil, nil, errCode()
		}
		return decideSession(w, now, NewSession{User: c.User, Client: c.Client, Description: c.Description, ProviderSession: c.ProviderSession}, issued, s.lifetime)
	})
	var done *ledger.AlreadyDone
	switch {
	case errors.As(err, &done):
		s.logFor(a).Warn("one-time code of a sign-in was used again", "user", u.Name, "addr", a.Addr)
		return nil, "", errCode()
	case err != nil:
		return nil, "", err
	}
	s.logFor(a).Info("signed in", "session", session.ID, "user", u.Name, "client", session.Client)
	return session, issued.Text, nil
}

// proves reports whether a verifier belongs to a challenge.
func proves(verifier, challenge string) bool {
	if len(verifier) < minVerifier || len(verifier) > maxVerifier {
		return false
	}
	sum := sha256.Sum256([]byte(verifier))
	return subtle.ConstantTimeCompare([]byte(base64.RawURLEncoding.EncodeToString(sum[:])), []byte(challenge)) == 1
}
