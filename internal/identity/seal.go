package identity

import (
	"crypto/aes"
	"crypto/cipher"
	"crypto/hkdf"
	"crypto/rand"
	"crypto/sha256"
	"fmt"
)

const saltBytes = 16

// Seal encrypts and authenticates plain under secret. Each call derives a new key from secret and a random
// salt, so that the number of calls is not limited. A text sealed for one purpose cannot be opened for
// another.
func Seal(secret []byte, purpose string, plain []byte) []byte {
	salt := make([]byte, saltBytes, saltBytes+len(plain)+16)
	_, _ = rand.Read(salt) // never fails
	aead := sealing(secret, salt, purpose)
	return aead.Seal(salt, make([]byte, aead.NonceSize()), plain, nil)
}

// Unseal opens a text from Seal. It returns false for anything else.
func Unseal(secret []byte, purpose string, sealed []byte) ([]byte, bool) {
	if len(sealed) < saltBytes {
		return nil, false
	}
	aead := sealing(secret, sealed[:saltBytes], purpose)
	plain, err := aead.Open(nil, make([]byte, aead.NonceSize()), sealed[saltBytes:], nil)
	return plain, err == nil
}

// sealing returns a cipher that is used once per salt, so its nonce may always be zero.
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

// derive returns a 256-bit key for one purpose, derived from secret and salt.
func derive(secret, salt []byte, purpose string) []byte {
	derived, err := hkdf.Key(sha256.New, secret, salt, "fairlead "+purpose, sha256.Size)
	if err != nil {
		panic(fmt.Sprintf("deriving a key of %d bytes: %v", sha256.Size, err)) // fails only for thousands of bytes
	}
	return derived
}
