package netmap

import (
	"cmp"
	"net/url"
	"strconv"
	"time"

	"github.com/fairlead-mesh/fairlead/internal/mesh"
	"github.com/fairlead-mesh/fairlead/internal/policy"
)

// SSHPolicy says who may open shells on the viewer. The first rule that fits
// counts.
type SSHPolicy struct {
	Rules []SSHRule `json:"rules"`
}

// SSHRule lets principals in as some of the users of the operating system.
type SSHRule struct {
	Principals []Principal `json:"principals"`
	// SSHUsers maps the user that is asked for to the one that it becomes: "="
	// is the same, "" is none, "*" stands for all that are not named.
	SSHUsers  map[string]string `json:"sshUsers"`
	Action    SSHAction         `json:"action"`
	AcceptEnv []string          `json:"acceptEnv,omitempty"`
}

// Principal is one who asks, by one of the two.
type Principal struct {
	NodeIP    string `json:"nodeIP,omitempty"`
	UserLogin string `json:"userLogin,omitempty"`
}

// SSHAction is what happens to a session.
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

// SSHActionPath is where a node asks whether a session that must be checked may
// begin. The words with a dollar are filled in by the node.
const SSHActionPath = "/machine/ssh/action/"

const askAction = SSHActionPath + "$SRC_NODE_ID/to/$DST_NODE_ID?ssh_user=$SSH_USER&local_user=$LOCAL_USER"

// HomeOf returns the host by which clients know the service, with the port if
// they are told one. They speak to the service whatever the host of a URL is that
// they are given, but open one more connection for a host of another name; and
// newer ones insist that this one is by TLS, which not every service answers.
func HomeOf(serverURL string) string {
	u, err := url.Parse(serverURL)
	if err != nil {
		return ""
	}
	return u.Host
}

// Accepted is the action that lets a session begin.
func Accepted() SSHAction {
	return SSHAction{Accept: true, AllowAgentForwarding: true, AllowLocalPortForwarding: true, AllowRemotePortForwarding: true}
}

// Ask is the action that makes a node ask whether a session may begin.
func Ask(home string) SSHAction {
	return SSHAction{HoldAndDelegate: "https://" + cmp.Or(home, "unused") + askAction}
}

// AskAgain is the answer to a node that asked: it shows a message to the one who
// waits, and asks once more. With the question comes back since when it asks.
func AskAgain(home string, since mesh.Time, message string) SSHAction {
	a := Ask(home)
	a.HoldAndDelegate += "&since=" + strconv.FormatInt(int64(since), 10)
	a.Message = message
	return a
}

// Rejected is the action that turns a session away and says why.
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

// users never lets anyone become root who is not meant to: clients differ in what
// "=" means for root.
func users(names []string) map[string]string {
	m := map[string]string{"root": ""}
	for _, name := range names {
		if name == policy.NonRoot {
			m["*"] = "="
		} else {
			m[name] = name
		}
	}
	return m
}
