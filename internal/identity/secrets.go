package identity

import (
	"crypto/rand"
	"sync/atomic"
)

// ServerSecret is a secret of the server, from which other keys are derived. All replicas have the same.
type ServerSecret struct {
	// Number identifies the secret: the first has number 1, and each rotation adds the next.
	Number int    `json:"number"`
	Value  []byte `json:"value"`
}

// NewServerSecret generates a secret.
func NewServerSecret(number int) ServerSecret {
	value := make([]byte, 32)
	_, _ = rand.Read(value) // never fails
	return ServerSecret{number, value}
}

// ServerSecrets are the secrets of the server: the current one, and earlier ones that are still needed to read what was
// sealed with them. It is safe for concurrent use.
type ServerSecrets struct {
	all atomic.Pointer[[]ServerSecret] // never empty; the current one is the last
}

// NewServerSecrets returns secrets of which the last is the current one. There must be at least one.
func NewServerSecrets(all ...ServerSecret) *ServerSecrets {
	s := &ServerSecrets{}
	s.Replace(all...)
	return s
}

// Replace replaces all secrets, as after a rotation.
func (s *ServerSecrets) Replace(all ...ServerSecret) {
	if len(all) == 0 {
		panic("no secrets")
	}
	s.all.Store(&all)
}

func (s *ServerSecrets) current() ServerSecret {
	all := *s.all.Load()
	return all[len(all)-1]
}

// first returns the oldest secret.
func (s *ServerSecrets) first() ServerSecret { return (*s.all.Load())[0] }

// numbered returns the secret with a number, or the current one if that does not exist anymore.
func (s *ServerSecrets) numbered(number int) ServerSecret {
	for _, one := range *s.all.Load() {
		if one.Number == number {
			return one
		}
	}
	return s.current()
}

// newest returns up to limit secrets, the current one first.
func (s *ServerSecrets) newest(limit int) (list []ServerSecret) {
	all := *s.all.Load()
	for i := len(all) - 1; i >= 0 && len(list) < limit; i-- {
		list = append(list, all[i])
	}
	return list
}
