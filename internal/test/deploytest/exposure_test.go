//go:build !race

package deploytest

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/fairlead-mesh/fairlead/internal/test/clienttest"
)

// published returns the port bindings of all containers of a stack, as "fairlead 9090/tcp 127.0.0.1".
func published(s *Stack) []string {
	var found []string
	for _, service := range s.Services() {
		for port, bindings := range s.Inspect(service).HostConfig.PortBindings {
			for _, b := range bindings {
				found = append(found, strings.TrimSpace(service+" "+port+" "+b.HostIP))
			}
		}
	}
	slices.Sort(found)
	return found
}

// neighbour creates a host on a link to this machine, with a route to the stack's own network, and
// returns the address at which it sees this machine.
func neighbour(t *testing.T, s *Stack) (host *clienttest.Namespace, machine netip.Addr) {
	t.Helper()
	lab := clienttest.NewLab(t)
	machine = lab.PlugIn()
	host = lab.Add("outside")
	if out, err := host.Command(t.Context(), "ip", "route", "add", s.Env("FRONT_SUBNET"), "via", machine.String()).CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	return host, machine
}

func reaches(t *testing.T, from *clienttest.Namespace, address string) bool {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Second)
	defer cancel()
	conn, err := from.DialContext(ctx, "tcp", address)
	if err != nil {
		return false
	}
	conn.Close()
	return true
}

// reachesSomething checks that a host can reach this machine at all: otherwise it would prove nothing that it does not reach a
// certain port.
func reachesSomething(t *testing.T, host *clienttest.Namespace, machine netip.Addr) {
	t.Helper()
	address := listenAt(t, machine)
	eventually(t, patience, func() error { // a busy machine may need more time for the first connection
		if !reaches(t, host, address) {
			return errors.New("nothing at all is reached from outside")
		}
		return nil
	})
}

// testExposure checks that in development only the relay's UDP port is reachable from other machines.
func testExposure(t *testing.T, s *Stack) {
	s = s.In(t)
	want := []string{
		"fairlead 3478/udp 0.0.0.0", "fairlead 9090/tcp 127.0.0.1",
		"proxy 3001/tcp 127.0.0.1", "proxy 8080/tcp 127.0.0.1",
	}
	if diff := cmp.Diff(want, published(s)); diff != "" {
		t.Errorf("published ports (-want +got):\n%s", diff)
	}
	host, machine := neighbour(t, s)
	reachesSomething(t, host, machine)
	for _, setting := range []string{"PROXY_DEV_PUBLISH", "CONSOLE_PUBLISH", "METRICS_PUBLISH"} {
		_, port, err := net.SplitHostPort(s.Env(setting))
		if err != nil {
			t.Fatal(err)
		}
		if reaches(t, host, net.JoinHostPort(machine.String(), port)) {
			t.Errorf("%s is reached from outside", setting)
		}
	}
	hidden(t, s, host, machine)
}

// hidden checks that internal ports are reachable neither at this machine's address nor through a
// route to the containers.
func hidden(t *testing.T, s *Stack, host *clienttest.Namespace, machine netip.Addr) {
	t.Helper()
	for _, port := range []int{5432, 8080, 9090, 3000} {
		if reaches(t, host, fmt.Sprintf("%s:%d", machine, port)) {
			t.Errorf("port %d of this machine is reached from outside", port)
		}
	}
	for service, port := range map[string]int{"fairlead": 8080, "console": 3000, "db": 5432} {
		for network, at := range s.Inspect(service).NetworkSettings.Networks {
			if address := fmt.Sprintf("%s:%d", at.IPAddress, port); reaches(t, host, address) {
				t.Errorf("%s is reached from outside at %s, its address in %s", service, address, network)
			}
		}
	}
}

// listenAt opens a port on one of this machine's addresses.
func listenAt(t *testing.T, machine netip.Addr) string {
	t.Helper()
	l, err := new(net.ListenConfig).Listen(t.Context(), "tcp", netip.AddrPortFrom(machine, 0).String())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	return l.Addr().String()
}
