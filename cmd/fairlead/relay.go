package main

import (
	"cmp"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"github.com/fairlead-mesh/fairlead/cmd/fairlead/cli"
	"github.com/fairlead-mesh/fairlead/internal/app"
)

// relayKeyVariable is the environment variable with the key of a relay, which hides it from other users of the machine. With
// the suffix _FILE, it names a file with the key, as the variables of the server do.
const relayKeyVariable = "FAIRLEAD_RELAY_KEY"

// relay returns the command that runs a relay until it is told to stop. The global flag --server names the server.
func relay(build cli.Build) *cobra.Command {
	o := app.RelayOptions{Log: os.Stderr, Version: build.Version}
	var ipv4, ipv6 string
	var proxies []string
	cmd := &cobra.Command{
		Use:   "relay --join <key> --server <url> --url <url>",
		Short: "Run a relay as a process of its own",
		Long: `Run a relay until it is stopped. "fairlead relays create" prints its key. Nodes
get the relay as soon as it has joined.

The relay follows the nodes of the server and stores them in its state
directory. While the server is away, it admits the nodes it knows. On SIGTERM,
it leaves the relay map and lets its clients switch to another relay. If it is
deleted on the server, it stops.

Clients connect over TLS. Use --letsencrypt or --tls-cert, or run the relay
behind a proxy that terminates TLS and passes on the Upgrade header.`,
		Example: `  fairlead relay --join "$KEY" --server https://mesh.example.com \
    --url https://ams-1.example.com --letsencrypt
  FAIRLEAD_RELAY_KEY=flr_... fairlead relay --server https://mesh.example.com \
    --url https://ams-1.example.com --listen 127.0.0.1:8081`,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) > 0 {
				return fmt.Errorf("unexpected argument %q", args[0])
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, _ []string) error {
			server, err := cmd.Flags().GetString("server")
			if err != nil {
				return err
			}
			if o.JoinKey, err = relayKey(o.JoinKey); err != nil {
				return err
			}
			o.Server = cmp.Or(server, os.Getenv("FAIRLEAD_CLI_SERVER"))
			if err := checkRelay(o); err != nil {
				return err
			}
			if o.IPv4, err = optionalAddr("--ipv4", ipv4); err != nil {
				return err
			}
			if o.IPv6, err = optionalAddr("--ipv6", ipv6); err != nil {
				return err
			}
			for _, text := range proxies {
				p, err := netip.ParsePrefix(text)
				if err != nil {
					return fmt.Errorf("--trusted-proxies: %q is not a network such as 127.0.0.1/32", text)
				}
				o.TrustedProxies = append(o.TrustedProxies, p)
			}
			if o.Listen == "" {
				if o.Listen = ":8080"; o.CertPath != "" || o.LetsEncrypt {
					o.Listen = ":443"
				}
			}
			return app.RunRelay(stopOnSignal(cmd.Context()), o)
		},
	}
	flags := cmd.Flags()
	flags.StringVar(&o.JoinKey, "join", "", "`key` of the relay (default $"+relayKeyVariable+", which hides the key from other users of this machine)")
	flags.StringVar(&o.URL, "url", "", "`URL` at which clients reach the relay, such as https://ams-1.example.com")
	flags.StringVar(&o.Listen, "listen", "", "`address` of the listener (default :443 with a certificate, :8080 without)")
	flags.StringVar(&o.STUNListen, "stun-listen", ":3478", "UDP `address` for STUN; empty turns STUN off")
	flags.IntVar(&o.STUNPort, "stun-port", 0, "UDP `port` at which clients reach STUN (default: the port of --stun-listen)")
	flags.StringVar(&ipv4, "ipv4", "", "public IPv4 `address`, for clients whose DNS does not work")
	flags.StringVar(&ipv6, "ipv6", "", "public IPv6 `address`, for clients whose DNS does not work")
	flags.StringVar(&o.CertPath, "tls-cert", "", "certificate `file`; it is reloaded when it changes")
	flags.StringVar(&o.KeyPath, "tls-key", "", "`file` with the private key of the certificate")
	flags.BoolVar(&o.LetsEncrypt, "letsencrypt", false, "obtain a certificate from Let's Encrypt; needs port 443")
	flags.StringVar(&o.Email, "letsencrypt-email", "", "contact `address` for Let's Encrypt")
	flags.StringVar(&o.ACMEDirectory, "acme-url", "https://acme-v02.api.letsencrypt.org/directory", "`URL` of another certificate authority for --letsencrypt")
	flags.StringVar(&o.StateDir, "state-dir", "/var/lib/fairlead-relay", "`directory` for the relay's private key and the nodes it knows")
	flags.StringVar(&o.MetricsListen, "metrics-listen", "", "`address` for Prometheus metrics; empty turns them off")
	flags.StringSliceVar(&proxies, "trusted-proxies", nil, "`networks` of proxies in front of the relay")
	flags.BoolVar(&o.Verbose, "verbose", false, "log every connection")
	return cmd
}

// relayKey returns the key from the flag, from the environment, or from the file that the environment names.
func relayKey(flag string) (string, error) {
	path := os.Getenv(relayKeyVariable + "_FILE")
	if key := cmp.Or(flag, os.Getenv(relayKeyVariable)); key != "" || path == "" {
		return key, nil
	}
	text, err := os.ReadFile(path)
	if err != nil {
		return "", fmt.Errorf("%s_FILE: %w", relayKeyVariable, err)
	}
	return strings.TrimSpace(string(text)), nil
}

// checkRelay returns an error that says which flags are missing or contradict each other.
func checkRelay(o app.RelayOptions) error {
	switch {
	case o.JoinKey == "":
		return errors.New("the key is missing: use --join or $" + relayKeyVariable + "; create a key with: fairlead relays create")
	case !strings.HasPrefix(o.JoinKey, "flr_"):
		return errors.New("this is not the key of a relay, which begins with flr_; create one with: fairlead relays create")
	case o.Server == "":
		return errors.New("the server is missing: use --server https://mesh.example.com")
	case o.URL == "":
		return errors.New("the address of this relay is missing: use --url https://ams-1.example.com")
	case (o.CertPath == "") != (o.KeyPath == ""):
		return errors.New("--tls-cert and --tls-key must be used together")
	case o.CertPath != "" && o.LetsEncrypt:
		return errors.New("use either --tls-cert or --letsencrypt, not both")
	}
	return nil
}

func optionalAddr(flag, text string) (netip.Addr, error) {
	if text == "" {
		return netip.Addr{}, nil
	}
	a, err := netip.ParseAddr(text)
	if err != nil {
		return a, fmt.Errorf("%s: %q is not an IP address", flag, text)
	}
	return a, nil
}
