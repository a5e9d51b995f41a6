package meshgen

import (
	"encoding/json"
	"strings"

	"github.com/fairlead-mesh/fairlead/internal/mesh"
)

// Dump returns the content of a snapshot as JSON, one object per line, so that the
// differences between two snapshots are readable.
func Dump(s *mesh.Snapshot) string {
	var out strings.Builder
	line := func(of map[string]any) {
		text, err := json.Marshal(of)
		if err != nil {
			panic(err)
		}
		out.Write(append(text, '\n'))
	}
	line(map[string]any{"rev": s.Rev, "counters": s.Counters})
	for u := range s.Users.All() {
		line(map[string]any{"user": u})
	}
	for n := range s.Nodes.All() {
		line(map[string]any{"node": n, "net": n.Net, "presence": n.Presence})
	}
	for f := range s.Facts.All() {
		line(map[string]any{"facts": f})
	}
	for k := range s.PreAuthKeys.All() {
		line(map[string]any{"preAuthKey": k, "use": k.LastUse})
	}
	for k := range s.APIKeys.All() {
		line(map[string]any{"apiKey": k, "use": k.LastUse})
	}
	for l := range s.Logins.All() {
		line(map[string]any{"login": l})
	}
	for v := range s.Settings.All() {
		line(map[string]any{"setting": v})
	}
	if p, ok := s.Policy(); ok {
		line(map[string]any{"policy": p})
	}
	for g := range s.SSHGrants.All() {
		line(map[string]any{"sshGrant": g})
	}
	for w := range s.Webhooks.All() {
		line(map[string]any{"webhook": w, "progress": w.Progress})
	}
	for m := range s.Receipts.All() {
		line(map[string]any{"receipt": m})
	}
	for v := range s.Sessions.All() {
		line(map[string]any{"session": v, "use": v.LastUse})
	}
	for k := range s.Passkeys.All() {
		line(map[string]any{"passkey": k})
	}
	for r := range s.Reservations.All() {
		line(map[string]any{"reservation": r})
	}
	for i := range s.Invitations.All() {
		line(map[string]any{"invitation": i})
	}
	for g := range s.Groups.All() {
		line(map[string]any{"group": g})
	}
	for r := range s.Rechecks.All() {
		line(map[string]any{"recheck": r})
	}
	for r := range s.Relays.All() {
		line(map[string]any{"relay": r, "report": r.Report})
	}
	return out.String()
}
