package control

import (
	"fmt"
	"testing"
)

func TestWaitingRoomHasRoomForOthersThanOneNetwork(t *testing.T) {
	for name, addr := range map[string]func(i int) string{
		"IPv4 address": func(int) string { return "192.0.2.7" },
		"IPv6 /64":     func(i int) string { return fmt.Sprintf("2001:db8::%x", i) },
		"no address":   func(int) string { return "" },
	} {
		var room loginQueue
		of := func(i int) *WaitingLogin { return &WaitingLogin{Addr: addr(i)} }
		first := of(1)
		enters(&room, first)
		for i := 2; i <= maxWaitingOf; i++ {
			if !enters(&room, of(i)) {
				t.Fatalf("%s: number %d is sent away", name, i)
			}
		}
		if enters(&room, of(maxWaitingOf+1)) {
			t.Errorf("%s: one too many waits", name)
		}
		for _, other := range []string{"192.0.2.8", "2001:db8:0:1::1"} {
			if !enters(&room, &WaitingLogin{Addr: other}) {
				t.Errorf("%s: %s is sent away", name, other)
			}
		}
		room.leave(first)
		if !enters(&room, of(1)) {
			t.Errorf("%s: the place of one who left is not free", name)
		}
	}
}

func enters(r *loginQueue, l *WaitingLogin) bool {
	_, ok := r.enter(l)
	return ok
}

func TestWaitingRoomIsBounded(t *testing.T) {
	var room loginQueue
	for i := range maxWaiting {
		if !enters(&room, &WaitingLogin{Addr: fmt.Sprintf("2001:db8:%x::1", i)}) {
			t.Fatalf("number %d is sent away", i)
		}
	}
	if enters(&room, &WaitingLogin{Addr: "192.0.2.1"}) {
		t.Error("one too many waits")
	}
}

func TestOneSubscriberCannotFillTheWaitingRoom(t *testing.T) {
	for name, addr := range map[string]func(i int) string{
		"IPv4 /24": func(i int) string { return fmt.Sprintf("198.51.100.%d", i%256) },
		"IPv6 /48": func(i int) string { return fmt.Sprintf("2001:db8:1:%x::1", i%256) },
	} {
		var room loginQueue
		if !enters(&room, &WaitingLogin{Addr: "192.0.2.1"}) {
			t.Fatal("the room is empty")
		}
		var first, last <-chan struct{}
		for i := range maxWaiting - 1 {
			lost, ok := room.enter(&WaitingLogin{Addr: addr(i)})
			if !ok {
				t.Fatalf("%s: number %d is sent away", name, i)
			}
			if last = lost; first == nil {
				first = lost
			}
		}
		if enters(&room, &WaitingLogin{Addr: addr(maxWaiting)}) {
			t.Errorf("%s: one too many waits", name)
		}
		select {
		case <-last:
			t.Errorf("%s: it loses a place to itself", name)
		default:
		}
		for i := range maxWaiting/2 - 1 { // until both networks have the same number
			if !enters(&room, &WaitingLogin{Addr: fmt.Sprintf("192.0.2.%d", 2+i%250)}) {
				t.Fatalf("%s: number %d of others is sent away", name, i)
			}
		}
		if len(room.all) != maxWaiting {
			t.Errorf("%s: %d wait", name, len(room.all))
		}
		select {
		case <-last:
		default:
			t.Errorf("%s: the newest has its place", name)
		}
		select {
		case <-first:
			t.Errorf("%s: the first lost its place", name)
		default:
		}
		if enters(&room, &WaitingLogin{Addr: "192.0.2.1"}) {
			t.Errorf("%s: a place is taken from one that has no more", name)
		}
	}
}
