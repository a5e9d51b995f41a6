package lang

import (
	"strconv"
	"strings"
	"time"

	"github.com/tailscale/hujson"
)

// NonRoot stands for every user of the operating system except root.
const NonRoot = "autogroup:nonroot"

// The maximum and the default validity of an approval of SSH sessions.
const (
	maxCheckPeriod     = 168 * time.Hour
	defaultCheckPeriod = 12 * time.Hour
)

func (r *reader) ssh(v hujson.Value) {
	kind := entry{what: "an ssh rule", members: []string{"action", "src", "dst", "users", "checkPeriod", "acceptEnv", "comment"}, required: []string{"action", "src", "dst", "users"}}
	r.entries(v, memberSSH, kind, func(v hujson.Value, m map[string]hujson.Value) {
		r.comment(m)
		rule := SSHRule{Line: r.line(v.StartOffset)}
		action, _ := r.string(m["action"], "action")
		period, hasPeriod := m["checkPeriod"]
		switch {
		case action == "check":
			rule.Check, rule.CheckPeriod = true, defaultCheckPeriod
			if hasPeriod {
				rule.CheckPeriod = r.checkPeriod(period)
			}
		case action != "accept":
			r.problem(m["action"].StartOffset, "unsupported action %q: use accept or check", action)
		case hasPeriod:
			r.problem(period.StartOffset, `checkPeriod requires "action": "check"`)
		}
		rule.Src = r.targetsOf(m["src"], "src", asShellSource)
		r.names(m["dst"], "dst", func(text string, at int) {
			if t, ok := r.target(text, at, "dst", asShell); ok {
				rule.Dst = append(rule.Dst, t)
				r.self(t, at, rule.Src, asPerson)
			}
		})
		before := len(r.problems)
		rule.Users = r.shellUsers(m["users"], "users", true)
		if len(rule.Users) == 0 && len(r.problems) == before {
			r.problem(m["users"].StartOffset, "users is empty, so the rule allows nobody")
		}
		if env, ok := m["acceptEnv"]; ok {
			r.names(env, "acceptEnv", func(name string, at int) {
				if name == "" || strings.ContainsAny(name, " \t\r\n=") {
					r.problem(at, "invalid environment variable name %q: it must not be empty or contain spaces or =; * and ? are wildcards", name)
					return
				}
				rule.AcceptEnv = append(rule.AcceptEnv, name)
			})
		}
		r.doc.SSH = append(r.doc.SSH, rule)
	})
}

// shellUsers reads names of users of an operating system.
func (r *reader) shellUsers(v hujson.Value, what string, groups bool) (users []string) {
	r.names(v, what, func(name string, at int) {
		switch {
		case groups && name == NonRoot:
		case groups && name == "*":
			r.problem(at, "* is not a user: use autogroup:nonroot, and add root to include it")
			return
		case strings.HasPrefix(name, "localpart:"):
			r.problem(at, "localpart: is not supported: list the names of the users")
			return
		case name == "" || strings.ContainsAny(name, " \t\r\n:*"):
			r.problem(at, "invalid operating system user %q", name)
			return
		}
		users = append(users, name)
	})
	return users
}

func (r *reader) checkPeriod(v hujson.Value) time.Duration {
	text, ok := r.string(v, "checkPeriod")
	if !ok || text == "always" {
		return 0
	}
	period, err := parsePeriod(text)
	if err != nil || period < 0 || period > maxCheckPeriod {
		r.problem(v.StartOffset, "invalid checkPeriod %q: use a duration up to 168h such as 20m or 12h, or always", text)
	}
	return period
}

// parsePeriod accepts days in addition to Go's units.
func parsePeriod(text string) (time.Duration, error) {
	days, ok := strings.CutSuffix(text, "d")
	if !ok {
		return time.ParseDuration(text)
	}
	n, err := strconv.ParseUint(days, 10, 8)
	return time.Duration(n) * 24 * time.Hour, err
}
