package netmap

import (
	"cmp"
	"net/url"
	"strconv"
	"time"

	"github.com/fairlead-mesh/fairlead/internal/mesh"
	"github.com/fairlead-mesh/fairlead/internal/policy"
	"github.com/fairlead-mesh/fairlead/internal/policy/lang"
)

// SSHPolicy says who may open SSH sessions on the viewer. The first rule that
// matches applies.
type SSHPolicy struct {
	Rules []SSHRule `json:"rules"`
}

// SSHRule lets principals log in as certain users of the operating system.
type SSHRule struct {
	Principals []Principal `json:"principals"`
	// SSHUsers maps a requested user to the local one: "=" means the same name,
	// "" that it is refused. The key "*" stands for all users not named.
	SSHUsers  map[string]string `json:"sshUsers"`
	Action    SSHAction         `json:"action"`
	AcceptEnv []string          `json:"acceptEnv,omitempty"`
}

// Principal identifies who opens a session. One of the fields is set.
type Principal struct {
	NodeIP    string `json:"nodeIP,omitempty"`
	UserLogin string `json:"userLogin,omitempty"`
}

// SSHAction is what a node does with a session.
type SSHAction struct {
	Message                   string        `json:"message,omitempty"`
	Reject                    bool          `json:"reject,omitempty"`
	Accept                    bool          `json:"accept,omitempty"`
	SessionDuration           time.Duration `json:"sessionDuration,omitempty"`
	AllowAgentForwarding      bool          `json:"allowAgentForwarding,omitempty"`
	HoldAndDelegate           string        `json:"holdAndDelegate,omitempty"`
	AllowLocalPortForwarding  bool          `json:"allowLocalPortForwarding,omitempty"`
	AllowRemotePortForwarding bool          `json:"allowRemotePortForwarding,omitempty"`
}

// SSHActionPath is the path under which a node asks whether a session that needs approval
// may begin. In the URL, the node replaces variables such as $SRC_NODE_ID.
const SSHActionPath = "/machine/ssh/action/"

const askAction = SSHActionPath + "$SRC_NODE_ID/to/$DST_NODE_ID?ssh_user=$SSH_USER&local_user=$LOCAL_USER"

// HomeOf returns the host of the server's URL, with the port if there is one. URLs that
// clients are sent must have this host. Clients send such requests to the server whatever
// the host is, but for another host they open one more connection. Newer clients require
// TLS for it, which not every server offers.
func HomeOf(serverURL string) string {
	u, err := url.Parse(serverURL)
	if err != nil {
		return ""
	}
	return u.Host
}

// Accepted returns the action that lets a session begin.
func Accepted() SSHAction {
	return SSHAction{Accept: true, AllowAgentForwarding: true, AllowLocalPortForwarding: true, AllowRemotePortForwarding: true}
}

// Ask returns the action that makes a node ask whether a session may begin.
func Ask(home string) SSHAction {
	return SSHAction{HoldAndDelegate: "https://" + cmp.Or(home, "unused") + askAction}
}

// AskAgain returns the response to a node that asked and must wait: it shows the user a
// message and makes the node ask again. The next request carries since.
func AskAgain(home string, since mesh.Time, message string) SSHAction {
	a := Ask(home)
	a.HoldAndDelegate += "&since=" + strconv.FormatInt(int64(since), 10)
	a.Message = message
	return a
}

// Rejected returns the action that refuses a session and tells the user why.
func Rejected(message string) SSHAction { return SSHAction{Reject: true, Message: message} }

func shellsOf(s *Scene, v Viewpoint) *SSHPolicy {
	p := &SSHPolicy{Rules: []SSHRule{}}
	for _, shell := range s.Shells(v.Class, v.Owner) {
		r := SSHRule{Principals: principals(shell), SSHUsers: users(shell.Users), Action: Accepted(), AcceptEnv: shell.AcceptEnv}
		if shell.Check {
			r.Action = Ask(s.Home)
		}
		p.Rules = append(p.Rules, r)
	}
	return p
}

func principals(s policy.Shell) (list []Principal) {
	for _, u := range s.People {
		list = append(list, Principal{UserLogin: profileOf(u).LoginName})
	}
	for _, a := range s.Addrs {
		list = append(list, Principal{NodeIP: a.String()})
	}
	return list
}

// users returns the SSHUsers of a rule. Root is allowed only by name: clients disagree on
// whether "=" includes root.
func users(names []string) map[string]string {
	m := map[string]string{"root": ""}
	for _, name := range names {
		if name == lang.NonRoot {
			m["*"] = "="
		} else {
			m[name] = name
		}
	}
	return m
}
