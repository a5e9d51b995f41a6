// Package passkeytest is an authenticator for tests: it creates passkeys and signs in with them as a browser would.
package passkeytest

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"fmt"
)

// Authenticator holds one passkey.
type Authenticator struct {
	// Origin is that of the page, such as https://mesh.example.com. RPID is its host.
	Origin, RPID string
	// Unverified leaves out that the person was verified, for example by a fingerprint.
	Unverified bool
	// Uses is sent as the number of signatures.
	Uses uint32

	id     []byte
	handle string
	key    *ecdsa.PrivateKey
}

const (
	present, verified, attested = 1, 4, 64
	idLength                    = 16
)

type options struct {
	Challenge string `json:"challenge"`
	User      struct {
		ID string `json:"id"`
	} `json:"user"`
}

// Create answers the options for creating a passkey.
func (a *Authenticator) Create(text string) (response string, err error) {
	var o options
	if err := json.Unmarshal([]byte(text), &o); err != nil {
		return "", err
	}
	if a.key, err = ecdsa.GenerateKey(elliptic.P256(), rand.Reader); err != nil {
		return "", err
	}
	a.id, a.handle = make([]byte, idLength), o.User.ID
	_, _ = rand.Read(a.id) // never fails
	point, err := a.key.PublicKey.Bytes()
	if err != nil {
		return "", err
	}
	// A COSE key in CBOR: {1: 2, 3: -7, -1: 1, -2: x, -3: y}.
	cose := append([]byte{0xa5, 0x01, 0x02, 0x03, 0x26, 0x20, 0x01, 0x21, 0x58, 0x20}, point[1:33]...)
	cose = append(append(cose, 0x22, 0x58, 0x20), point[33:]...)
	data := append(a.data(attested), make([]byte, 16)...) // no AAGUID
	data = binary.BigEndian.AppendUint16(data, idLength)
	data = append(append(data, a.id...), cose...)
	// {"fmt": "none", "attStmt": {}, "authData": data}
	object := append([]byte("\xa3\x63fmt\x64none\x67attStmt\xa0\x68authData\x59"), byte(len(data)>>8), byte(len(data)))
	return a.respond(map[string]string{
		"clientDataJSON": encode(a.client("webauthn.create", o.Challenge)), "attestationObject": encode(append(object, data...)),
	})
}

// SignIn answers the options for signing in.
func (a *Authenticator) SignIn(text string) (response string, err error) {
	var o options
	if err := json.Unmarshal([]byte(text), &o); err != nil {
		return "", err
	}
	data, client := a.data(0), a.client("webauthn.get", o.Challenge)
	sum := sha256.Sum256(client)
	sum = sha256.Sum256(append(append([]byte{}, data...), sum[:]...))
	signature, err := ecdsa.SignASN1(rand.Reader, a.key, sum[:])
	if err != nil {
		return "", err
	}
	return a.respond(map[string]string{
		"clientDataJSON": encode(client), "authenticatorData": encode(data), "signature": encode(signature), "userHandle": a.handle,
	})
}

func (a *Authenticator) data(flags byte) []byte {
	flags |= present | verified
	if a.Unverified {
		flags &^= verified
	}
	sum := sha256.Sum256([]byte(a.RPID))
	return binary.BigEndian.AppendUint32(append(sum[:], flags), a.Uses)
}

func (a *Authenticator) client(kind, challenge string) []byte {
	return fmt.Appendf(nil, `{"type":%q,"challenge":%q,"origin":%q,"crossOrigin":false}`, kind, challenge, a.Origin)
}

func (a *Authenticator) respond(parts map[string]string) (string, error) {
	text, err := json.Marshal(map[string]any{"id": encode(a.id), "rawId": encode(a.id), "type": "public-key", "response": parts})
	return string(text), err
}

func encode(b []byte) string { return base64.RawURLEncoding.EncodeToString(b) }
