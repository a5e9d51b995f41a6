//go:build !race

package hostiletest

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"net"
	"net/http"
	"os"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"tailscale.com/types/key"
)

// The attacker runs in its own process, so that its work is not attributed to the server or to the
// nodes that are measured. It runs at a lower priority, because real attackers use their own CPUs.

// orders tells the attacker what to do.
type orders struct {
	Attack   string
	Rate     int // units per second
	Conns    int // concurrent units
	Networks int
	For      time.Duration
	Target   string // the attacked address: the server's, nginx's or the console's
	Noise    key.MachinePublic
	Console  bool // whether the target is a console
}

// tally is the result of an attack.
type tally struct {
	Units    int64            // number of units started
	Held     int64            // maximum number of concurrent units
	Outcomes map[string]int64 // how many units ended in which way
	// Longest is the longest time for which the server kept a silent connection open.
	Longest time.Duration
}

const ordersVariable = "HOSTILE_ORDERS"

// attacker runs one attack.
type attacker struct {
	orders

	next, now atomic.Int64 // next counts sources handed out, now counts units in progress

	mu    sync.Mutex
	tally tally // guarded by mu
}

// attackerMain is the main function of the attacker's process.
func attackerMain(text string) error {
	a := &attacker{tally: tally{Outcomes: map[string]int64{}}}
	if err := json.Unmarshal([]byte(text), &a.orders); err != nil {
		return err
	}
	if err := syscall.Setpriority(syscall.PRIO_PROCESS, 0, 10); err != nil {
		return fmt.Errorf("lowering the priority: %w", err)
	}
	unit, ok := units()[a.Attack]
	if !ok {
		return fmt.Errorf("unknown attack %q", a.Attack)
	}
	ctx, cancel := context.WithTimeout(context.Background(), a.For)
	defer cancel()
	a.run(ctx, unit)
	a.mu.Lock()
	defer a.mu.Unlock()
	return json.NewEncoder(os.Stdout).Encode(a.tally)
}

// unit is one connection or one request. It returns its outcome.
type unit func(ctx context.Context, a *attacker) (outcome string)

// pacing is how precisely units are spread over time.
const pacing = 5 * time.Millisecond

// run keeps as many units in progress as ordered, starting no more than ordered per second, until ctx ends.
func (a *attacker) run(ctx context.Context, do unit) {
	var all sync.WaitGroup
	slots, started := make(chan struct{}, a.Conns), time.Now()
	for n := range math.MaxInt {
		// Units that could not start in time are not made up for later.
		due := started.Add(time.Duration(n) * time.Second / time.Duration(a.Rate))
		if late := time.Since(due); late > pacing {
			started = started.Add(late)
		} else if late < -pacing {
			<-time.After(-late)
		}
		if ctx.Err() != nil {
			break
		}
		select {
		case slots <- struct{}{}:
		case <-ctx.Done():
			continue
		}
		a.begin()
		all.Go(func() {
			defer func() { <-slots }()
			outcome := do(ctx, a)
			a.now.Add(-1)
			if ctx.Err() != nil {
				outcome = "open until the end"
			}
			a.mu.Lock()
			defer a.mu.Unlock()
			a.tally.Outcomes[outcome]++
		})
	}
	all.Wait()
}

func (a *attacker) begin() {
	now := a.now.Add(1)
	a.mu.Lock()
	defer a.mu.Unlock()
	a.tally.Units++
	a.tally.Held = max(a.tally.Held, now)
}

// source returns the source address of the next connection: another network each time, and another
// address in it.
func (a *attacker) source() net.IP {
	n := a.next.Add(1)
	network, host := int(n)%a.Networks, int(n)/a.Networks
	return net.IPv4(127, byte(10+network%200), byte(network/200), byte(1+host%250))
}

// dial connects from one of the attacker's networks. The connection is closed when ctx ends.
func (a *attacker) dial(ctx context.Context) (net.Conn, error) {
	d := net.Dialer{LocalAddr: &net.TCPAddr{IP: a.source()}, Timeout: 5 * time.Second}
	c, err := d.DialContext(ctx, "tcp", a.Target)
	if err != nil {
		return nil, err
	}
	context.AfterFunc(ctx, func() { c.Close() })
	return c, nil
}

// deaf is dial with the smallest receive buffer that the system allows.
func (a *attacker) deaf(ctx context.Context) (net.Conn, error) {
	c, err := a.dial(ctx)
	if err != nil {
		return nil, err
	}
	if tcp, ok := c.(*net.TCPConn); ok {
		if err := tcp.SetReadBuffer(1024); err != nil {
			c.Close()
			return nil, err
		}
	}
	return c, nil
}

// hold sends nothing more, reads what arrives, and returns when the server closes the connection.
func (a *attacker) hold(c net.Conn) string {
	defer c.Close()
	return a.silence(func() error {
		_, err := io.Copy(io.Discard, c)
		return err
	})
}

// silence measures how long the server waits until it closes a connection.
func (a *attacker) silence(f func() error) string {
	begin := time.Now()
	err := f()
	a.mu.Lock()
	defer a.mu.Unlock()
	a.tally.Longest = max(a.tally.Longest, time.Since(begin))
	return "cut off: " + cause(err)
}

// trickle sends a text byte by byte until the server closes the connection.
func (a *attacker) trickle(ctx context.Context, c net.Conn, text string, every time.Duration) string {
	defer c.Close()
	ended := make(chan struct{})
	go func() { // returns when the connection is closed
		defer close(ended)
		_, _ = io.Copy(io.Discard, c)
	}()
	return a.silence(func() error {
		for i := 0; ; i++ {
			if _, err := c.Write([]byte{text[i%len(text)]}); err != nil {
				return err
			}
			select {
			case <-ctx.Done():
				return ctx.Err()
			case <-ended:
				return nil
			case <-time.After(every):
			}
		}
	})
}

// answer returns the status of a response and closes the connection.
func answer(c net.Conn) string {
	defer c.Close()
	if err := c.SetReadDeadline(time.Now().Add(15 * time.Second)); err != nil {
		return cause(err)
	}
	res, err := http.ReadResponse(bufio.NewReader(c), nil)
	if err != nil {
		return cause(err)
	}
	defer res.Body.Close()
	return fmt.Sprint(res.StatusCode)
}

// cause shortens an error, so that equal ones are counted together.
func cause(err error) string {
	var timeout net.Error
	switch {
	case err == nil, errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF), errors.Is(err, net.ErrClosed):
		return "closed"
	case errors.Is(err, syscall.ECONNRESET), errors.Is(err, syscall.EPIPE):
		return "reset"
	case errors.Is(err, syscall.ECONNREFUSED):
		return "refused"
	case errors.As(err, &timeout) && timeout.Timeout():
		return "no answer"
	}
	return err.Error()
}
