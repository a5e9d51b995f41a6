package app

import (
	"cmp"
	"fmt"
	"os"

	"github.com/fairlead-mesh/fairlead/internal/guard"
)

// limit sets the limits on unauthenticated connections.
func (s *service) limit() error {
	files, err := guard.Files()
	if err != nil {
		return fmt.Errorf("cannot read the file descriptor limit: %w", err)
	}
	open, unproven := guard.Limits(files, guard.Memory(os.DirFS("/")), s.Config.ServesTLS())
	unproven = cmp.Or(s.Config.Limits.Connections, unproven)
	s.guard = guard.New(guard.Config{
		Open: open, Unproven: unproven, UnprovenOfOne: guard.PerNetwork(s.Config.Limits.ConnectionsPerNetwork, min(unproven, open)),
		TrustedProxies: s.Config.TrustedProxies, Log: s.log, Registerer: s.registry,
	})
	return nil
}
