//go:build !race

package e2e

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os/exec"
	"strings"
	"testing"
	"time"

	"golang.org/x/net/dns/dnsmessage"

	"github.com/fairlead-mesh/fairlead/internal/test/clienttest"
	"github.com/fairlead-mesh/fairlead/internal/test/meshtest"
)

// lookup is the timeout of one query to a client's resolver. Queries are retried.
const lookup = 500 * time.Millisecond

// serveNames runs a nameserver in a namespace. It resolves every name to addr, or to nothing if
// addr is invalid.
func serveNames(ctx context.Context, t *testing.T, host *clienttest.Namespace, at, addr netip.Addr) {
	t.Helper()
	conn, err := host.ListenPacket(ctx, "udp", netip.AddrPortFrom(at, 53).String())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	go func() {
		question := make([]byte, 1500)
		for {
			n, from, err := conn.ReadFrom(question)
			if err != nil {
				return
			}
			var m dnsmessage.Message
			if m.Unpack(question[:n]) != nil || len(m.Questions) != 1 {
				continue
			}
			m.Response, m.RecursionAvailable, m.Additionals = true, true, nil
			switch q := m.Questions[0]; {
			case !addr.IsValid():
				m.RCode = dnsmessage.RCodeNameError
			case q.Type == dnsmessage.TypeA:
				m.Answers = []dnsmessage.Resource{{
					Header: dnsmessage.ResourceHeader{Name: q.Name, Class: dnsmessage.ClassINET, TTL: 1},
					Body:   &dnsmessage.AResource{A: addr.As4()},
				}}
			}
			if answer, err := m.Pack(); err == nil {
				_, _ = conn.WriteTo(answer, from)
			}
		}
	}()
}

// resolve queries the resolver of the client on a host.
func resolve(ctx context.Context, host *clienttest.Namespace, name string) (string, error) {
	resolver := net.Resolver{PreferGo: true, Dial: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return host.DialContext(ctx, "udp", "100.100.100.100:53")
	}}
	ctx, cancel := context.WithTimeout(ctx, lookup)
	defer cancel()
	addrs, err := resolver.LookupNetIP(ctx, "ip", name+".")
	if err != nil {
		return "", err
	}
	return addrs[0].Unmap().String(), nil
}

// getent queries the host's resolver, as programs on it do.
func getent(ctx context.Context, host *clienttest.Namespace, name string) (string, error) {
	cmd := host.Command(ctx, "getent", "ahostsv4", name)
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	var exit *exec.ExitError
	switch err := cmd.Run(); {
	case errors.As(err, &exit) && exit.ExitCode() == 2:
		return "", &net.DNSError{Err: "not found by getent", Name: name, IsNotFound: true}
	case err != nil:
		return "", fmt.Errorf("%w: %s", err, out.Bytes())
	}
	addr, _, _ := strings.Cut(out.String(), " ")
	return addr, nil
}

// names checks which names a client on a host resolves, using ask.
type names struct {
	*lab
	ask func(ctx context.Context, host *clienttest.Namespace, name string) (string, error)
}

// become runs a fairlead command and waits until the client resolves a name to an address, or not
// at all if the address is empty.
func (n names) become(ctx context.Context, t *testing.T, name, addr string, command ...string) {
	t.Helper()
	began := time.Now()
	n.CLI(command...)
	eventually(ctx, t, func() error {
		got, err := n.ask(ctx, n.hosts[0], name)
		var refused *net.DNSError
		switch {
		case addr == "" && errors.As(err, &refused) && refused.IsNotFound:
			return nil
		case got != addr || addr == "":
			return errors.Join(err, fmt.Errorf("after fairlead %s: %s is %q, want %q", strings.Join(command, " "), name, got, addr))
		}
		return nil
	})
	t.Logf("%v after fairlead %s", time.Since(began).Round(time.Millisecond), strings.Join(command, " "))
}

func TestChangesOfDNSReachTheResolverOfAClient(t *testing.T) {
	forEachVersion(t, func(t *testing.T, version string) {
		ctx := within(t, patience)
		l := newLab(t)
		l.serve(t, meshtest.Config{})
		l.joinBoth(ctx, version)
		own, corp, found := netip.MustParseAddr("198.18.0.254"), l.Add("corp"), netip.MustParseAddr("192.0.2.80")
		if err := corp.Command(ctx, "ip", "addr", "add", own.String()+"/24", "dev", "eth0").Run(); err != nil {
			t.Fatal(err)
		}
		serveNames(ctx, t, corp, own, netip.Addr{}) // the nameserver that the hosts use without the mesh
		serveNames(ctx, t, corp, corp.Addr, found)
		second := address(ctx, t, l.daemons[1]).String()
		client, host := names{l, resolve}, names{l, getent}
		host.become(ctx, t, "second", second, "dns", "show")

		host.become(ctx, t, "second."+baseDomain, "", "dns", "set", "--magic-dns=false")
		host.become(ctx, t, "grafana."+baseDomain, "100.64.9.9", "dns", "record", "add", "grafana."+baseDomain, "100.64.9.9")
		host.become(ctx, t, "second", second, "dns", "set", "--magic-dns")

		client.become(ctx, t, "printer.outside.example", "192.0.2.7", "dns", "record", "add", "printer.outside.example", "192.0.2.7")
		client.become(ctx, t, "six.outside.example", "fd00:7::9", "dns", "record", "add", "six.outside.example", "fd00:7::9")
		client.become(ctx, t, "grafana."+baseDomain, "", "dns", "record", "remove", "grafana."+baseDomain)

		client.become(ctx, t, "www.corp.example", found.String(), "dns", "split", "set", "corp.example", corp.Addr.String())
		host.become(ctx, t, "www", found.String(), "dns", "set", "--search-domains", "corp.example")
		client.become(ctx, t, "the.world.example", found.String(), "dns", "set", "--nameservers", corp.Addr.String())

		set := l.CLI("dns", "show")
		l.Kill()
		l.Resume()
		if got := l.CLI("dns", "show"); got != set {
			t.Errorf("after a restart: %s\nbefore: %s", got, set)
		}
		// A client that was disconnected insists on TLS for a while; one that has just started
		// does not.
		if err := l.daemons[0].Restart(); err != nil {
			t.Fatal(err)
		}
		client.become(ctx, t, "new.outside.example", "192.0.2.8", "dns", "record", "add", "new.outside.example", "192.0.2.8")
		client.become(ctx, t, "printer.outside.example", "192.0.2.7", "dns", "show")
		client.become(ctx, t, "printer.outside.example", "", "dns", "reset", "--force")
		host.become(ctx, t, "www", "", "dns", "show")
	})
}
