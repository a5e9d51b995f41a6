// Command linked runs tsnet, the Tailscale client that is linked into programs. It joins a server and serves an echo on a port
// of its node. When it has joined, it prints the address of tsnet's SOCKS5 server and the password for it. It exits when its
// standard input is closed.
//
//	linked <server URL> <auth key> <hostname> <directory of its state> <port>
//
// It is a separate module for two reasons: the server does not get the dependencies of tsnet, and their versions are those of the
// newest Tailscale client, which the tests compile anyway.
package main

import (
	"context"
	"fmt"
	"io"
	"net"
	"os"

	"tailscale.com/tsnet"
	"tailscale.com/types/logger"
)

func run(serverURL, authKey, hostname, dir, port string) error {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	go func() {
		_, _ = io.Copy(io.Discard, os.Stdin)
		cancel()
	}()
	s := &tsnet.Server{Dir: dir, Hostname: hostname, ControlURL: serverURL, AuthKey: authKey, Logf: logger.Discard, UserLogf: logger.Discard}
	defer s.Close()
	if _, err := s.Up(ctx); err != nil {
		return fmt.Errorf("joining: %w", err)
	}
	echo, err := s.Listen("tcp", ":"+port)
	if err != nil {
		return err
	}
	go serve(echo)
	addr, password, _, err := s.Loopback()
	if err != nil {
		return err
	}
	fmt.Println(addr, password)
	<-ctx.Done()
	return nil
}

// serve sends back what it receives.
func serve(l net.Listener) {
	for {
		conn, err := l.Accept()
		if err != nil {
			return
		}
		go func() {
			defer conn.Close()
			_, _ = io.Copy(conn, conn)
		}()
	}
}

func main() {
	if len(os.Args) != 6 {
		fmt.Fprintln(os.Stderr, "usage: linked <server URL> <auth key> <hostname> <directory of its state> <port>")
		os.Exit(2)
	}
	if err := run(os.Args[1], os.Args[2], os.Args[3], os.Args[4], os.Args[5]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}
