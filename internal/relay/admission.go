package relay

import (
	"bytes"
	"io"

	"go4.org/mem"
	"tailscale.com/derp"
	"tailscale.com/types/key"
)

// admission reads from a client and fails before its first frame when verify
// refuses the key in it.
//
// The DERP server can ask about a key only through HTTP and the default client of
// the process. So the key is read here, on its way to that server, which then
// sees to it that the client holds the key: a client is served only if both agree.
type admission struct {
	from   io.Reader
	verify func(key.NodePublic) error // nil once the key was let in
}

func (a *admission) Read(p []byte) (int, error) {
	if a.verify != nil {
		// Any first frame but this kind is refused by the DERP server, so
		// where the key should be there is nothing else.
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
