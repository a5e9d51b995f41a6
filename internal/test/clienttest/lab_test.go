package clienttest

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"testing"
	"time"
)

func TestHostsOfALabReachEachOtherAndNobodyElse(t *testing.T) {
	lab := NewLab(t)
	a, b := lab.Add("a"), lab.Add("b")
	l, err := b.Listen(t.Context(), "tcp", b.Addr.String()+":80")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	conn, err := a.Dial("tcp", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	conn.Close()
	other := NewLab(t).Add("other")
	for address, from := range map[string]*Namespace{l.Addr().String(): other, "192.0.2.1:80": a} {
		ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
		if _, err := from.DialContext(ctx, "tcp", address); err == nil {
			t.Errorf("%s is reached from %s", address, from.Name)
		}
		cancel()
	}
}

func TestMachineThatIsPluggedInReachesHostsAndIsReached(t *testing.T) {
	for range 2 { // two labs at once
		lab := NewLab(t)
		machine := lab.PlugIn()
		host := lab.Add("host")
		here, err := new(net.ListenConfig).Listen(t.Context(), "tcp", machine.String()+":0")
		if err != nil {
			t.Fatal(err)
		}
		defer here.Close()
		there, err := host.Listen(t.Context(), "tcp", host.Addr.String()+":0")
		if err != nil {
			t.Fatal(err)
		}
		defer there.Close()
		for address, dial := range map[string]func(context.Context, string, string) (net.Conn, error){
			here.Addr().String(): host.DialContext, there.Addr().String(): new(net.Dialer).DialContext,
		} {
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			conn, err := dial(ctx, "tcp", address)
			cancel()
			if err != nil {
				t.Errorf("%s: %v", address, err)
				continue
			}
			conn.Close()
		}
	}
}

func TestHostsOfALabWriteTheirOwnEtcAndRun(t *testing.T) {
	lab := NewLab(t)
	a, b := lab.Add("a"), lab.Add("b")
	before, err := os.ReadFile("/etc/resolv.conf")
	if err != nil {
		t.Fatal(err)
	}
	for _, line := range []string{
		"echo mine >/etc/resolv.conf", "echo mine >/run/fairlead-clienttest", "echo mine >/etc/fairlead-clienttest",
	} {
		if err := a.run("sh", "-c", line); err != nil {
			t.Fatal(err)
		}
	}
	for _, name := range []string{"/run/fairlead-clienttest", "/etc/fairlead-clienttest"} {
		if err := a.run("test", "-e", name); err != nil {
			t.Error(err)
		}
		if err := b.run("test", "-e", name); err == nil {
			t.Errorf("%s is seen by another host of the lab", name)
		}
		if _, err := os.Stat(name); err == nil {
			t.Errorf("%s is seen outside the lab", name)
		}
	}
	if after, err := os.ReadFile("/etc/resolv.conf"); err != nil || string(after) != string(before) {
		t.Errorf("resolv.conf was changed outside the lab: %s, %v", after, err)
	}
}

func TestBlockedUDPIsLostInBothDirections(t *testing.T) {
	lab := NewLab(t)
	hosts := []*Namespace{lab.Add("a"), lab.Add("b")}
	var sockets [2]net.PacketConn
	for i, n := range hosts {
		var err error
		if sockets[i], err = n.ListenPacket(t.Context(), "udp", n.Addr.String()+":7000"); err != nil {
			t.Fatal(err)
		}
		defer sockets[i].Close()
	}
	pass := func(from int, text string, wait time.Duration) error {
		to := 1 - from
		if _, err := sockets[from].WriteTo([]byte(text), sockets[to].LocalAddr()); err != nil {
			return err
		}
		if err := sockets[to].SetReadDeadline(time.Now().Add(wait)); err != nil {
			return err
		}
		got := make([]byte, 100)
		size, _, err := sockets[to].ReadFrom(got)
		if err == nil && string(got[:size]) != text {
			err = fmt.Errorf("%q came as %q", text, got[:size])
		}
		return err
	}
	for _, step := range []struct {
		name string
		do   func(a, b *Namespace)
		lost bool
	}{
		{"at first", func(*Namespace, *Namespace) {}, false},
		{"blocked", lab.BlockUDP, true},
		{"allowed again", lab.AllowUDP, false},
	} {
		step.do(hosts[0], hosts[1])
		for from := range hosts {
			wait := time.Minute
			if step.lost {
				wait = 200 * time.Millisecond
			}
			err := pass(from, step.name, wait)
			if lost := errors.Is(err, os.ErrDeadlineExceeded); lost != step.lost || err != nil && !lost {
				t.Errorf("%s, from host %d: %v", step.name, from, err)
			}
		}
	}
}

func TestLabIsGoneAfterItsTest(t *testing.T) {
	var pid int
	t.Run("inner", func(t *testing.T) { pid = NewLab(t).Add("a").pid })
	if pid == 0 {
		t.Skip("no lab was made")
	}
	if _, err := os.Stat(fmt.Sprintf("/proc/%d", pid)); err == nil {
		t.Error("the process that holds the namespace runs on")
	}
}
