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
		var room waitingRoom
		of := func(i int) *WaitingLogin { return &WaitingLogin{Addr: addr(i)} }
		first := of(1)
		room.enter(first)
		for i := 2; i <= maxWaitingOf; i++ {
			if !room.enter(of(i)) {
				t.Fatalf("%s: number %d is sent away", name, i)
			}
		}
		if room.enter(of(maxWaitingOf + 1)) {
			t.Errorf("%s: one too many waits", name)
		}
		for _, other := range []string{"192.0.2.8", "2001:db8:0:1::1"} {
			if !room.enter(&WaitingLogin{Addr: other}) {
				t.Errorf("%s: %s is sent away", name, other)
			}
		}
		room.leave(first)
		if !room.enter(of(1)) {
			t.Errorf("%s: the place of one who left is not free", name)
		}
	}
}

func TestWaitingRoomIsBounded(t *testing.T) {
	var room waitingRoom
	for i := range maxWaiting {
		if !room.enter(&WaitingLogin{Addr: fmt.Sprintf("2001:db8:0:%x::1", i)}) {
			t.Fatalf("number %d is sent away", i)
		}
	}
	if room.enter(&WaitingLogin{Addr: "192.0.2.1"}) {
		t.Error("one too many waits")
	}
}
