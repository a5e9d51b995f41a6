package wire

import (
	"crypto/rand"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/fairlead-mesh/fairlead/internal/control"
	"github.com/fairlead-mesh/fairlead/internal/mesh"
	"github.com/fairlead-mesh/fairlead/internal/netmap"
)

// sshAction tells a node whether an SSH session that needs approval may start on it. Nodes retry after any
// status other than 200.
func (s *Server) sshAction(w http.ResponseWriter, r *http.Request) {
	p := peerOf(r)
	ask, ok := sshAsk(r)
	if !ok {
		http.Error(w, "invalid request", http.StatusBadRequest)
		return
	}
	ask.MachineKey = p.machine
	if len(s.config.Providers) > 0 || s.passkeys.offered() {
		ask.SignIn = strings.TrimSuffix(s.config.ServerURL, "/") + sshPath
	}
	answer := http.NewResponseController(w)
	_ = answer.SetWriteDeadline(time.Time{}) // it waits for approval by a person
	defer func() { _ = answer.SetWriteDeadline(time.Now().Add(s.config.RequestTimeout)) }()
	out, err := s.config.SSH.Check(r.Context(), mesh.Actor{Addr: p.addr, RequestID: rand.Text()[:12]}, ask)
	if err != nil {
		s.fail(w, r, err)
		return
	}
	switch out.Verdict {
	case control.SSHAccept:
		writeJSON(w, netmap.Accepted())
	case control.SSHReject:
		writeJSON(w, netmap.Rejected(out.Message))
	case control.SSHAskAgain:
		writeJSON(w, netmap.AskAgain(netmap.HomeOf(s.config.ServerURL), out.Since, out.Message))
	}
}

// sshAsk parses the URL that package netmap gave to the node.
func sshAsk(r *http.Request) (ask control.SSHAsk, ok bool) {
	number := func(text string) (n int64) {
		n, err := strconv.ParseInt(text, 10, 64)
		ok = ok && err == nil && n > 0
		return n
	}
	query, err := url.ParseQuery(r.URL.RawQuery)
	ok = err == nil
	ask.Src, ask.Dst = mesh.NodeID(number(r.PathValue("src"))), mesh.NodeID(number(r.PathValue("dst")))
	ask.User = query.Get("ssh_user")
	if since := query.Get("since"); since != "" {
		ask.Since = mesh.Time(number(since))
	}
	return ask, ok
}
