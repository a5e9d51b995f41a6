package meshtest

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"tailscale.com/tailcfg"
)

// Session asks whether a session from another node may start on this one, as a client that receives an SSH
// connection does, until there is a decision. It first waits for a policy that makes the node ask.
func (n *Node) Session(ctx context.Context, from tailcfg.NodeID, user string) (begins bool, err error) {
	next := n.delegate()
	for ; next == ""; next = n.delegate() {
		select {
		case <-ctx.Done():
			return false, fmt.Errorf("the node was not told to ask: %w", ctx.Err())
		case <-time.After(20 * time.Millisecond):
		}
	}
	for next != "" {
		action, err := n.action(ctx, next, from, user)
		if err != nil || action.Accept || action.Reject {
			return action.Accept, err
		}
		next = action.HoldAndDelegate
	}
	return false, errors.New("the answer neither decides nor tells where to ask next")
}

// delegate returns the URL that the node was given to ask, if any.
func (n *Node) delegate() (address string) {
	n.Look(func(v *View) {
		if v.SSH == nil {
			return
		}
		for _, rule := range v.SSH.Rules {
			if rule.Action != nil {
				address = cmp.Or(rule.Action.HoldAndDelegate, address)
			}
		}
	})
	return address
}

// action asks the server once.
func (n *Node) action(ctx context.Context, delegate string, from tailcfg.NodeID, user string) (action tailcfg.SSHAction, err error) {
	_, path, _ := strings.Cut(strings.TrimPrefix(delegate, "https://"), "/")
	path = "/" + strings.NewReplacer(
		"$SRC_NODE_ID", strconv.FormatInt(int64(from), 10), "$DST_NODE_ID", strconv.FormatInt(int64(n.ID()), 10),
		"$SSH_USER", url.QueryEscape(user), "$LOCAL_USER", url.QueryEscape(user),
	).Replace(path)
	res, err := n.ask(ctx, http.MethodGet, path, nil)
	if err != nil {
		return action, err
	}
	defer res.Body.Close()
	return action, json.NewDecoder(res.Body).Decode(&action)
}
