// Command control104 is the control client of Tailscale v1.104.4 without its data plane. It joins a
// server and prints every map it computes as a line of JSON until its standard input closes.
//
//	control104 <server URL> <auth key> <hostname>
//
// It is a separate module because that client needs a newer Go version than the server does.
package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log"
	"os"
	"time"

	"tailscale.com/control/controlclient"
	"tailscale.com/net/netmon"
	"tailscale.com/net/tsdial"
	"tailscale.com/tailcfg"
	"tailscale.com/types/key"
	"tailscale.com/types/netmap"
	"tailscale.com/util/eventbus"
)

type node struct {
	Name      string
	Addresses []string
	Online    *bool
	Expired   bool
}

func describe(n tailcfg.NodeView) node {
	v := node{Name: n.Name(), Online: n.Online().Clone(), Expired: !n.KeyExpiry().IsZero() && n.KeyExpiry().Before(time.Now())}
	for _, p := range n.Addresses().All() {
		v.Addresses = append(v.Addresses, p.Addr().String())
	}
	return v
}

type printer struct{ *json.Encoder }

func (p printer) UpdateFullNetmap(m *netmap.NetworkMap) {
	out := struct {
		Version int
		Self    node
		Peers   []node
		Relays  int
	}{Version: int(tailcfg.CurrentCapabilityVersion), Self: describe(m.SelfNode), Relays: len(m.DERPMap.Regions)}
	for _, n := range m.Peers {
		out.Peers = append(out.Peers, describe(n))
	}
	_ = p.Encode(out) // a closed stdout means that the reader has exited
}

func run(serverURL, authKey, hostname string) error {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	go func() {
		_, _ = io.Copy(io.Discard, os.Stdin)
		cancel()
	}()
	bus := eventbus.New()
	defer bus.Close()
	dialer := tsdial.NewDialer(netmon.NewStatic())
	dialer.SetBus(bus)
	defer dialer.Close()
	machine := key.NewMachine()
	client, err := controlclient.NewDirect(controlclient.Options{
		GetMachinePrivateKey: func() (key.MachinePrivate, error) { return machine, nil },
		ServerURL:            serverURL, AuthKey: authKey, DiscoPublicKey: key.NewDisco().Public(),
		Hostinfo: &tailcfg.Hostinfo{BackendLogID: "none", Hostname: hostname, OS: "linux"},
		Dialer:   dialer, Bus: bus, Logf: log.Printf,
	})
	if err != nil {
		return err
	}
	defer client.Close()
	if url, err := client.TryLogin(ctx, controlclient.LoginDefault); err != nil || url != "" {
		return fmt.Errorf("joining: %w, told to visit %q", err, url)
	}
	if err := client.SendUpdate(ctx); err != nil {
		return fmt.Errorf("reporting: %w", err)
	}
	for ctx.Err() == nil {
		if err := client.PollNetMap(ctx, printer{json.NewEncoder(os.Stdout)}); err != nil && ctx.Err() == nil {
			return fmt.Errorf("polling: %w", err)
		}
	}
	return nil
}

func main() {
	if len(os.Args) != 4 {
		fmt.Fprintln(os.Stderr, "usage: control104 <server URL> <auth key> <hostname>")
		os.Exit(2)
	}
	if err := run(os.Args[1], os.Args[2], os.Args[3]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}
