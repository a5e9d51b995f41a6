package identity

import (
	"crypto/aes"
	"crypto/cipher"
	"crypto/hkdf"
	"crypto/rand"
	"crypto/sha256"
	"fmt"

	"tailscale.com/types/key"
)

const saltBytes = 16

// Seal returns plain encrypted and authenticated under secret. Each seal has a
// key of its own, drawn from secret by a random salt, so that no number of them
// wears the secret out. What was sealed for one purpose does not open for
// another.
func Seal(secret []byte, purpose string, plain []byte) []byte {
	salt := make([]byte, saltBytes, saltBytes+len(plain)+16)
	_, _ = rand.Read(salt) // never fails
	aead := sealing(secret, salt, purpose)
	return aead.Seal(salt, make([]byte, aead.NonceSize()), plain, nil)
}

// Unseal opens what Seal returned. It is false for all else.
func Unseal(secret []byte, purpose string, sealed []byte) ([]byte, bool) {
	if len(sealed) < saltBytes {
		return nil, false
	}
	aead := sealing(secret, sealed[:saltBytes], purpose)
	plain, err := aead.Open(nil, make([]byte, aead.NonceSize()), sealed[saltBytes:], nil)
	return plain, err == nil
}

// sealing is used once for each salt, so its nonce may always be zero.
func sealing(secret, salt []byte, purpose string) cipher.AEAD {
	derived := derive(secret, salt, purpose)
	block, err := aes.NewCipher(derived)
	if err != nil {
		panic(fmt.Sprintf("a cipher with a key of %d bytes: %v", len(derived), err))
	}
	aead, err := cipher.NewGCM(block)
	if err != nil {
		panic(fmt.Sprintf("a block of %d bytes: %v", block.BlockSize(), err))
	}
	return aead
}

// derive returns a key of 256 bits that follows from secret and salt and serves
// one purpose.
func derive(secret, salt []byte, purpose string) []byte {
	derived, err := hkdf.Key(sha256.New, secret, salt, "fairlead "+purpose, sha256.Size)
	if err != nil {
		panic(fmt.Sprintf("deriving a key of %d bytes: %v", sha256.Size, err)) // fails for thousands of bytes only
	}
	return derived
}

// keyText encodes the server's own key, from which others are derived.
func keyText(service key.MachinePrivate) []byte {
	text, err := service.MarshalText()
	if err != nil {
		panic(err) // a key can always be encoded
	}
	return text
}
