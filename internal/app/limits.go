package app

import (
	"cmp"
	"fmt"

	"github.com/fairlead-mesh/fairlead/internal/guard"
)

// limit sets how many connections strangers can have.
func (s *service) limit() error {
	files, err := guard.Files()
	if err != nil {
		return fmt.Errorf("cannot read the limit of file descriptors: %w", err)
	}
	open, unproven := guard.Limits(files)
	s.guard = guard.New(guard.Config{
		Open: open, Unproven: cmp.Or(s.Config.Limits.Connections, unproven), UnprovenOfOne: s.Config.Limits.ConnectionsPerNetwork,
		TrustedProxies: s.Config.TrustedProxies, Log: s.log, Registerer: s.registry,
	})
	return nil
}
