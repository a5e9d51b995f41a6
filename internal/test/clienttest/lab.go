package clienttest

import (
	"bufio"
	"context"
	_ "embed"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"os/exec"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"
)

// Lab is a private network: namespaces on one switch, 198.18.0.0/24, some of them with further networks
// behind them. Nothing in it can reach the host or the outside, or be reached from there, unless the host is
// plugged in.
type Lab struct {
	t     testing.TB
	sw    *Namespace
	net   byte // third byte of the addresses
	hosts byte
	inner int // networks behind hosts
}

// Namespace is one host of a Lab: a separate network stack, and a view of the file system with a writable
// /etc and an empty /run. Everything else is shared with the test's machine.
type Namespace struct {
	Name string
	Addr netip.Addr

	pid int // id of the process that holds the namespaces
}

//go:embed hold.sh
var holdScript string

// NewLab creates a private network that exists until the test ends. It needs root.
func NewLab(t testing.TB) *Lab {
	t.Helper()
	if os.Getuid() != 0 {
		t.Skip("needs root: it makes network namespaces")
	}
	for _, program := range []string{"ip", "iptables", "nsenter"} {
		if _, err := exec.LookPath(program); err != nil {
			t.Fatalf("%v; install packages iproute2, iptables and util-linux", err)
		}
	}
	l := &Lab{t: t}
	l.sw = l.hold("switch")
	l.must(l.sw.run("ip", "link", "add", "br0", "type", "bridge"))
	l.must(l.sw.run("ip", "link", "set", "br0", "up"))
	return l
}

// Add puts a host on the switch. Its default route leads nowhere: a client considers a host without one
// offline.
func (l *Lab) Add(name string) *Namespace {
	l.t.Helper()
	l.hosts++
	n := l.hold(name)
	n.Addr = l.addr(l.hosts)
	l.must(l.sw.run("ip", "link", "add", port(n), "type", "veth", "peer", "name", "eth0", "netns", strconv.Itoa(n.pid)))
	l.must(l.sw.run("ip", "link", "set", port(n), "master", "br0", "up"))
	// Addresses that are configured automatically would bypass BlockUDP.
	l.must(n.run("sh", "-c", "echo 1 >/proc/sys/net/ipv6/conf/eth0/disable_ipv6"))
	l.must(n.run("ip", "addr", "add", n.Addr.String()+"/24", "dev", "eth0"))
	l.must(n.run("ip", "link", "set", "eth0", "up"))
	l.must(n.run("ip", "route", "add", "default", "via", l.addr(254).String()))
	return n
}

func (l *Lab) addr(last byte) netip.Addr { return netip.AddrFrom4([4]byte{198, 18, l.net, last}) }

// PlugIn puts the test's machine itself on the switch, before any host, and returns its address there. From
// then on the hosts can reach what listens at that address, and the machine and its containers can reach the
// hosts; the outside stays unreachable. The network is not 198.18.0.0/24 but a separate one, because several
// labs may be plugged in at once.
func (l *Lab) PlugIn() netip.Addr {
	l.t.Helper()
	if l.hosts != 0 {
		l.t.Fatal("PlugIn comes before Add")
	}
	for l.net = 1; ; l.net++ {
		// The socket name reserves the network as long as this process lives.
		taken, err := new(net.ListenConfig).Listen(l.t.Context(), "unix", fmt.Sprintf("@fairlead-lab-%d", l.net))
		if err == nil {
			l.t.Cleanup(func() { taken.Close() })
			break
		}
		if l.net == 255 {
			l.t.Fatalf("no network is free: %v", err)
		}
	}
	name := fmt.Sprintf("fl-lab%d", l.net)
	l.must(l.sw.run("ip", "link", "add", "host", "type", "veth", "peer", "name", name, "netns", strconv.Itoa(os.Getpid())))
	l.must(l.sw.run("ip", "link", "set", "host", "master", "br0", "up"))
	here := l.addr(253)
	for _, args := range [][]string{{"addr", "add", here.String() + "/24", "dev", name}, {"link", "set", name, "up"}} {
		if out, err := exec.CommandContext(l.t.Context(), "ip", args...).CombinedOutput(); err != nil {
			l.t.Fatalf("ip %s: %v\n%s", strings.Join(args, " "), err, out)
		}
	}
	return here
}

// Behind adds a host on a network that is reachable only through routers. The host has the first address of
// the network, and the routers have the next ones in order.
func (l *Lab) Behind(name string, network netip.Prefix, routers ...*Namespace) *Namespace {
	l.t.Helper()
	l.inner++
	bridge := fmt.Sprintf("in%d", l.inner)
	l.must(l.sw.run("ip", "link", "add", bridge, "type", "bridge"))
	l.must(l.sw.run("ip", "link", "set", bridge, "up"))
	behind := l.hold(name)
	addr := network.Addr()
	for i, n := range append([]*Namespace{behind}, routers...) {
		addr = addr.Next()
		port := fmt.Sprintf("%sp%d", bridge, i)
		l.must(l.sw.run("ip", "link", "add", port, "type", "veth", "peer", "name", bridge, "netns", strconv.Itoa(n.pid)))
		l.must(l.sw.run("ip", "link", "set", port, "master", bridge, "up"))
		l.must(n.run("ip", "addr", "add", netip.PrefixFrom(addr, network.Bits()).String(), "dev", bridge))
		l.must(n.run("ip", "link", "set", bridge, "up"))
		l.must(n.run("sh", "-c", "echo 1 >/proc/sys/net/ipv4/ip_forward"))
	}
	behind.Addr = network.Addr().Next()
	return behind
}

// Cut disconnects a host from the switch until Reconnect is called or the test ends.
func (l *Lab) Cut(n *Namespace) {
	l.t.Helper()
	l.must(l.sw.run("ip", "link", "set", port(n), "down"))
}

// Reconnect undoes Cut.
func (l *Lab) Reconnect(n *Namespace) {
	l.t.Helper()
	l.must(l.sw.run("ip", "link", "set", port(n), "up"))
}

// port returns the switch port of a host.
func port(n *Namespace) string { return fmt.Sprintf("p%d", n.Addr.As4()[3]) }

func (l *Lab) must(err error) {
	l.t.Helper()
	if err != nil {
		l.t.Fatal(err)
	}
}

// hold starts the process that keeps a namespace alive. It ends when its standard input is closed, so the
// namespace is removed when this process dies.
func (l *Lab) hold(name string) *Namespace {
	l.t.Helper()
	cmd := exec.CommandContext(context.Background(), "/bin/sh", "-ec", holdScript)
	cmd.SysProcAttr = &syscall.SysProcAttr{Unshareflags: syscall.CLONE_NEWNET | syscall.CLONE_NEWNS}
	cmd.Env = append(os.Environ(), "HOLD_DIR="+l.t.TempDir())
	stdin, err := cmd.StdinPipe()
	l.must(err)
	stdout, err := cmd.StdoutPipe()
	l.must(err)
	var problem strings.Builder
	cmd.Stderr = &problem
	l.must(cmd.Start())
	end := func() error { return errors.Join(stdin.Close(), cmd.Wait()) }
	if line, err := bufio.NewReader(stdout).ReadString('\n'); line != "ready\n" {
		l.t.Fatalf("making the namespace %s: %v\n%s", name, errors.Join(err, end()), problem.String())
	}
	l.t.Cleanup(func() {
		if err := end(); err != nil {
			l.t.Errorf("ending the namespace %s: %v", name, err)
		}
	})
	return &Namespace{Name: name, pid: cmd.Process.Pid}
}

// BlockUDP drops all UDP packets between two hosts, in both directions, until AllowUDP is called or the test
// ends.
func (l *Lab) BlockUDP(a, b *Namespace) {
	l.t.Helper()
	l.must(errors.Join(a.filterUDP("-I", b), b.filterUDP("-I", a)))
}

// AllowUDP undoes BlockUDP.
func (l *Lab) AllowUDP(a, b *Namespace) {
	l.t.Helper()
	l.must(errors.Join(a.filterUDP("-D", b), b.filterUDP("-D", a)))
}

// filterUDP uses a table before those that clients fill, so that their rules cannot override it.
func (n *Namespace) filterUDP(action string, from *Namespace) error {
	return n.run("iptables", "-t", "raw", action, "PREROUTING", "-s", from.Addr.String(), "-p", "udp", "-j", "DROP")
}

// Command returns a command that runs in the namespace, in the root directory.
func (n *Namespace) Command(ctx context.Context, name string, args ...string) *exec.Cmd {
	return exec.CommandContext(ctx, "nsenter", append([]string{"-t", strconv.Itoa(n.pid), "-m", "-n", "--", name}, args...)...)
}

// run runs a Command that must succeed.
func (n *Namespace) run(name string, args ...string) error {
	cmd := n.Command(context.Background(), name, args...)
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("%s: %s %s: %w\n%s", n.Name, name, strings.Join(args, " "), err, out)
	}
	return nil
}

// Dial connects from the namespace. The address must not need a DNS lookup.
func (n *Namespace) Dial(network, address string) (net.Conn, error) {
	return n.DialContext(context.Background(), network, address)
}

// DialContext is like Dial, but stops when ctx ends.
func (n *Namespace) DialContext(ctx context.Context, network, address string) (conn net.Conn, err error) {
	err = n.inside(func() error {
		conn, err = new(net.Dialer).DialContext(ctx, network, address)
		return err
	})
	return conn, err
}

// Listen listens in the namespace.
func (n *Namespace) Listen(ctx context.Context, network, address string) (listener net.Listener, err error) {
	err = n.inside(func() error {
		listener, err = new(net.ListenConfig).Listen(ctx, network, address)
		return err
	})
	return listener, err
}

// ListenPacket listens for packets in the namespace.
func (n *Namespace) ListenPacket(ctx context.Context, network, address string) (conn net.PacketConn, err error) {
	err = n.inside(func() error {
		conn, err = new(net.ListenConfig).ListenPacket(ctx, network, address)
		return err
	})
	return conn, err
}

// inside calls f on a thread in the network namespace. A socket stays in the namespace in which it was
// created.
func (n *Namespace) inside(f func() error) error {
	there, err := os.Open(fmt.Sprintf("/proc/%d/ns/net", n.pid))
	if err != nil {
		return err
	}
	defer there.Close()
	runtime.LockOSThread()
	home, err := os.Open("/proc/thread-self/ns/net")
	if err != nil {
		runtime.UnlockOSThread()
		return err
	}
	defer home.Close()
	if err := unix.Setns(int(there.Fd()), unix.CLONE_NEWNET); err != nil {
		runtime.UnlockOSThread()
		return err
	}
	err = f()
	if back := unix.Setns(int(home.Fd()), unix.CLONE_NEWNET); back != nil {
		return errors.Join(err, back) // the thread stays locked, and ends with its goroutine
	}
	runtime.UnlockOSThread()
	return err
}
