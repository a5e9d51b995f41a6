package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"sync"
	"sync/atomic"
	"time"
)

// scim pushes users and groups as an identity provider does, on several connections and without pauses, and
// measures how soon nodes receive the changes that follow from it, and endpoint changes of other nodes.
//
// The first auth keys belong to the first users, who exist before, so that nodes have an owner whose groups
// change. Only nodes of the other keys change their endpoints. All nodes must see each other, and rules of the
// policy must name the groups, so that each new member changes what all nodes know about the member's nodes.
func (b *bench) scim(ctx context.Context, c *cluster) error {
	r := b.result("scim")
	if _, settled := c.settle(ctx, b.quiet, time.Minute); !settled {
		return errors.New("the nodes did not settle")
	}
	log := c.follow()
	defer c.unfollow()
	notices := c.notice()
	defer c.memberships.Store(nil)
	p := &provider{bench: b, cluster: c, ids: make([]string, b.scimUsers), groups: make([]string, b.scimGroups), client: &http.Client{
		Timeout: b.requestTimeout, Transport: &http.Transport{MaxIdleConnsPerHost: b.scimConns, MaxConnsPerHost: b.scimConns},
	}}
	defer p.client.CloseIdleConnections()

	b.meter.start()
	start := time.Now()
	pushing, pushed := context.WithCancel(ctx)
	var updates sync.WaitGroup
	updates.Go(func() { b.changeOthers(pushing, ctx, log) })
	p.push(ctx, notices)
	took := time.Since(start)
	pushed()
	updates.Wait()
	for log.pending.Load() > 0 && time.Since(start) < took+deliveryLimit && pause(ctx, 10*time.Millisecond) == nil {
	}
	b.meter.stop(r)
	r["users"], r["groups"], r["requests"], r["failed"] = b.scimUsers, b.scimGroups, p.request.count.Load(), p.failed.Load()
	r["push_s"], r["requests_per_s"] = seconds(took), round(float64(p.request.count.Load())/took.Seconds(), 1)
	r["memberships_watched"], r["incomplete"] = notices.last.count.Load(), notices.lost.Load()+log.pending.Load()
	r["changes"] = log.last.count.Load()
	p.request.put(r, "request")
	notices.lag.put(r, "membership_lag")
	notices.last.put(r, "membership_last_node")
	log.lag.put(r, "lag")
	r.cpuPerUnit("server_cpu_ms_per_request", int(p.request.count.Load()))
	c.takeErrors(r)
	b.emit(r, "users", "groups", "push_s", "membership_lag_p50_ms", "membership_lag_p99_ms", "membership_last_node_p99_ms", "lag_p50_ms", "lag_p99_ms",
		"request_p50_ms", "request_p99_ms", "server_cpu_ms_per_request", "failed")
	return ctx.Err()
}

// changeOthers changes endpoints of nodes without an owner among the users that are pushed, at the first rate,
// until the push is done. The first change is made at once, because a small push takes less than a second.
func (b *bench) changeOthers(pushing, ctx context.Context, log *changeLog) {
	var others []*node
	for _, n := range log.cluster.members() {
		if n.authKey >= b.scimOwners {
			others = append(others, n)
		}
	}
	var updates sync.WaitGroup
	defer updates.Wait()
	for start, i := time.Now(), 0; len(others) > 0; i++ {
		if pause(pushing, time.Until(start.Add(time.Duration(float64(i)/b.rates[0]*float64(time.Second))))) != nil {
			return
		}
		n := others[i%len(others)]
		log.begin(n)
		updates.Go(func() { log.cluster.noteError("update", n.update(ctx)) })
	}
}

// membershipLog holds, by node, who has not been told yet that its owner joined a group.
type membershipLog struct {
	watches   []atomic.Pointer[watch]
	lag, last histogram // per delivery, and until the last observer was told
	lost      atomic.Int64
}

func (c *cluster) notice() *membershipLog {
	l := &membershipLog{watches: make([]atomic.Pointer[watch], len(c.nodes))}
	c.memberships.Store(l)
	return l
}

func (l *membershipLog) begin(n *node) *watch {
	w := n.cluster.newWatch(n)
	w.lag = &l.lag
	l.watches[n.index].Store(w)
	return w
}

// end waits until all observers have been told.
func (l *membershipLog) end(ctx context.Context, w *watch) {
	if took, ok := w.wait(ctx, deliveryLimit); ok {
		l.last.add(took)
	} else {
		l.lost.Add(1)
	}
	l.watches[w.index].Store(nil)
}

// provider is an identity provider that pushes users and groups with SCIM.
type provider struct {
	bench   *bench
	cluster *cluster
	client  *http.Client
	ids     []string // the server's ids of the users
	groups  []string // the server's ids of the groups
	request histogram
	failed  atomic.Int64
}

// membersPerRequest is how many members a provider adds to a group with one request.
const membersPerRequest = 10

// push pushes all users, then all groups that do not exist, without members, and then the members: each user joins two groups. The
// second groups follow when all nodes have been told of the first ones, so that it is known which change a
// message is about.
func (p *provider) push(ctx context.Context, notices *membershipLog) {
	b := p.bench
	p.each(len(p.ids), func(i int) { p.ids[i] = p.pushUser(ctx, i) })
	p.each(len(p.groups), func(g int) {
		if p.groups[g] = p.find(ctx, "Groups", "displayName", teamName(g)); p.groups[g] == "" {
			p.groups[g] = p.send(ctx, http.MethodPost, "Groups", map[string]any{"displayName": teamName(g), "externalId": fmt.Sprintf("g-%d", g)})
		}
	})
	for pass := range 2 {
		members := make([][]int, b.scimGroups)
		for i := range b.scimUsers {
			g := (i + pass*(1+7*(i/b.scimGroups))) % b.scimGroups
			members[g] = append(members[g], i)
		}
		var told sync.WaitGroup
		p.each(len(p.groups), func(g int) {
			for rest := members[g]; len(rest) > 0; {
				some := rest[:min(len(rest), membersPerRequest)]
				rest = rest[len(some):]
				if some[0] < b.scimOwners {
					w := notices.begin(p.cluster.nodes[some[0]])
					told.Go(func() { notices.end(ctx, w) })
				}
				p.addMembers(ctx, g, some)
			}
		})
		told.Wait()
	}
}

// each calls do for 0 to n-1, with as many calls at a time as there are connections.
func (p *provider) each(n int, do func(int)) {
	var next atomic.Int64
	var connections sync.WaitGroup
	for range p.bench.scimConns {
		connections.Go(func() {
			for i := int(next.Add(1)) - 1; i < n; i = int(next.Add(1)) - 1 {
				do(i)
			}
		})
	}
	connections.Wait()
}

func personName(i int) string { return fmt.Sprintf("person-%04d", i) }
func teamName(g int) string   { return fmt.Sprintf("team-%02d", g) }

// pushUser looks for a user, as providers do, and then replaces or creates it.
func (p *provider) pushUser(ctx context.Context, i int) (id string) {
	name := personName(i)
	body := map[string]any{
		"userName": name, "externalId": fmt.Sprintf("u-%d", i), "displayName": "Person " + name, "active": true,
		"emails": []map[string]any{{"value": name + "@example.com", "primary": true}},
	}
	if id = p.find(ctx, "Users", "userName", name); id != "" {
		return p.send(ctx, http.MethodPut, "Users/"+id, body)
	}
	return p.send(ctx, http.MethodPost, "Users", body)
}

// find returns the id of the resource with an attribute, or "".
func (p *provider) find(ctx context.Context, kind, attribute, value string) (id string) {
	return p.send(ctx, http.MethodGet, kind+"?filter="+url.QueryEscape(fmt.Sprintf("%s eq %q", attribute, value)), nil)
}

func (p *provider) addMembers(ctx context.Context, g int, users []int) {
	var members []map[string]string
	for _, i := range users {
		members = append(members, map[string]string{"value": p.ids[i]})
	}
	p.send(ctx, http.MethodPatch, "Groups/"+p.groups[g], map[string]any{
		"schemas":    []string{"urn:ietf:params:scim:api:messages:2.0:PatchOp"},
		"Operations": []map[string]any{{"op": "Add", "path": "members", "value": members}},
	})
}

// send makes one request and returns the id of the resource in the response, or of the first one in a list.
func (p *provider) send(ctx context.Context, method, path string, body any) (id string) {
	begin := time.Now()
	id, err := p.try(ctx, method, path, body)
	p.request.add(time.Since(begin))
	if err != nil {
		p.failed.Add(1)
		p.cluster.noteError("scim", err)
	}
	return id
}

func (p *provider) try(ctx context.Context, method, path string, body any) (string, error) {
	var text []byte
	if body != nil {
		var err error
		if text, err = json.Marshal(body); err != nil {
			return "", err
		}
	}
	req, err := http.NewRequestWithContext(ctx, method, p.bench.url+"/scim/v2/"+path, bytes.NewReader(text))
	if err != nil {
		return "", err
	}
	req.Header.Set("Authorization", "Bearer "+p.bench.apiKey)
	req.Header.Set("Content-Type", "application/scim+json")
	res, err := p.client.Do(req)
	if err != nil {
		return "", err
	}
	defer res.Body.Close()
	answer, err := io.ReadAll(res.Body)
	if err != nil {
		return "", err
	}
	if res.StatusCode >= http.StatusMultipleChoices {
		return "", fmt.Errorf("%s %s: %s: %s", method, path, res.Status, answer)
	}
	var found struct {
		ID        string
		Resources []struct{ ID string }
	}
	if len(answer) > 0 {
		err = json.Unmarshal(answer, &found)
	}
	if len(found.Resources) > 0 {
		return found.Resources[0].ID, err
	}
	return found.ID, err
}
