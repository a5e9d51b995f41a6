package relay

import (
	"bytes"
	"io"

	"go4.org/mem"
	"tailscale.com/derp"
	"tailscale.com/types/key"
)

// admission reads from a client. It fails without passing on anything if verify refuses the key in the first
// frame.
//
// The DERP server can check a key only over HTTP, with the default HTTP client of the process. So the key is
// read here, on its way to the DERP server, which then verifies that the client holds the key. A client is
// served only if both succeed.
type admission struct {
	from   io.Reader
	verify func(key.NodePublic) error // nil after the key was admitted
}

func (a *admission) Read(p []byte) (int, error) {
	if a.verify != nil {
		// The DERP server accepts only this kind of frame first, so the key is always at this position.
		var frame [derp.FrameHeaderLen + derp.KeyLen]byte
		if _, err := io.ReadFull(a.from, frame[:]); err != nil {
			return 0, err
		}
		if err := a.verify(key.NodePublicFromRaw32(mem.B(frame[derp.FrameHeaderLen:]))); err != nil {
			return 0, err
		}
		a.from, a.verify = io.MultiReader(bytes.NewReader(frame[:]), a.from), nil
	}
	return a.from.Read(p)
}
