package explain

import (
	"fmt"
	"slices"

	"github.com/fairlead-mesh/fairlead/internal/policy/lang"
)

// access is what can be reached at an address, in a normal form that does not depend on
// how the rules are written. Clients respond to echo requests from anyone who may reach
// anything on them, so ICMP matters only if nothing else is allowed.
type access struct {
	something      bool
	tcp, udp, sctp []lang.PortRange
	others         []int // protocols without ports, in order
}

func accessOf(services []lang.Service) (a access) {
	for i := range services {
		s := &services[i]
		a.something = true
		for _, p := range []struct {
			protocol int
			ports    *[]lang.PortRange
		}{{lang.TCP, &a.tcp}, {lang.UDP, &a.udp}, {lang.SCTP, &a.sctp}} {
			if s.Has(p.protocol) {
				*p.ports = append(*p.ports, s.Ports...)
			}
		}
		for _, p := range s.Protocols {
			if !lang.HasPorts(p) && p != lang.ICMP && p != lang.ICMPv6 && slices.Contains(s.Ports, lang.AllPorts()) {
				a.others = append(a.others, p)
			}
		}
	}
	return a.normal()
}

// normal returns the normal form of a. It modifies the lists of a, which must not be
// shared.
func (a access) normal() access {
	a.tcp, a.udp, a.sctp = lang.MergePorts(a.tcp), lang.MergePorts(a.udp), lang.MergePorts(a.sctp)
	slices.Sort(a.others)
	a.others = slices.Compact(a.others)
	return a
}

func (a access) plus(b access) access {
	return access{
		a.something || b.something, slices.Concat(a.tcp, b.tcp), slices.Concat(a.udp, b.udp), slices.Concat(a.sctp, b.sctp),
		slices.Concat(a.others, b.others),
	}.normal()
}

// minus returns what is in a but not in b. Echo requests are lost only if b allows
// nothing at all.
func (a access) minus(b access) access {
	if !b.something {
		return a
	}
	less := access{
		tcp: portsWithout(a.tcp, b.tcp), udp: portsWithout(a.udp, b.udp), sctp: portsWithout(a.sctp, b.sctp),
		others: slices.DeleteFunc(slices.Clone(a.others), func(p int) bool { return slices.Contains(b.others, p) }),
	}
	less.something = len(less.tcp)+len(less.udp)+len(less.sctp)+len(less.others) > 0
	return less
}

// meets reports whether a and b have something in common. Every access includes echo
// requests, so an access with nothing else meets every other.
func (a access) meets(b access) bool {
	alone := func(x access) bool { return len(x.tcp)+len(x.udp)+len(x.sctp)+len(x.others) == 0 }
	if !a.something || !b.something {
		return false
	}
	return alone(a) || alone(b) || portsMeet(a.tcp, b.tcp) || portsMeet(a.udp, b.udp) || portsMeet(a.sctp, b.sctp) ||
		slices.ContainsFunc(a.others, func(p int) bool { return slices.Contains(b.others, p) })
}

func portsMeet(a, b []lang.PortRange) bool {
	return slices.ContainsFunc(a, func(p lang.PortRange) bool {
		return slices.ContainsFunc(b, func(q lang.PortRange) bool { return p.First <= q.Last && q.First <= p.Last })
	})
}

// portsWithout returns the ports in a that are not in b. Both are sorted.
func portsWithout(a, b []lang.PortRange) (list []lang.PortRange) {
	for _, p := range a {
		first := int(p.First)
		for _, q := range b {
			if int(q.Last) < first || q.First > p.Last {
				continue
			}
			if first < int(q.First) {
				list = append(list, lang.PortRange{First: uint16(first), Last: q.First - 1})
			}
			first = int(q.Last) + 1
		}
		if first <= int(p.Last) {
			list = append(list, lang.PortRange{First: uint16(first), Last: p.Last})
		}
	}
	return list
}

// services returns the access as services of a rule.
func (a access) services() (list []lang.Service) {
	if slices.Equal(a.tcp, a.udp) && len(a.tcp) > 0 {
		list, a.tcp, a.udp = append(list, lang.Service{Ports: a.tcp}), nil, nil
	}
	for _, p := range []struct {
		protocol int
		ports    []lang.PortRange
	}{{lang.TCP, a.tcp}, {lang.UDP, a.udp}, {lang.SCTP, a.sctp}} {
		if len(p.ports) > 0 {
			list = append(list, lang.Service{Protocols: []int{p.protocol}, Ports: p.ports})
		}
	}
	for _, p := range a.others {
		list = append(list, lang.Service{Protocols: []int{p}, Ports: []lang.PortRange{lang.AllPorts()}})
	}
	if len(list) == 0 && a.something {
		list = []lang.Service{{Protocols: []int{lang.ICMP}, Ports: []lang.PortRange{lang.AllPorts()}}}
	}
	return list
}

func (a access) tcpPort(port uint16) bool {
	return portsMeet(a.tcp, []lang.PortRange{{First: port, Last: port}})
}

// full reports whether all TCP and UDP ports are open.
func (a access) full() bool {
	return slices.Contains(a.tcp, lang.AllPorts()) && slices.Contains(a.udp, lang.AllPorts())
}

// nothing is the number of the empty access.
const nothing = 0

// accessTable numbers accesses, so that comparing and merging them is a lookup. Equal
// accesses have equal numbers.
type accessTable struct {
	all     []access
	full    []bool // by number: whether all TCP and UDP ports are open
	port22  []bool // by number: whether port 22 is open
	numbers map[string]int
	sums    [][]int32 // by two numbers, the smaller one first; 0 means not computed yet
	lost    map[[2]int]int
}

func newAccessTable() *accessTable {
	b := &accessTable{numbers: map[string]int{}, lost: map[[2]int]int{}}
	b.number(access{}) // gets the number nothing
	return b
}

func (b *accessTable) number(a access) int {
	key := fmt.Sprint(a)
	n, ok := b.numbers[key]
	if !ok {
		n = len(b.all)
		b.all, b.numbers[key] = append(b.all, a), n
		b.full, b.port22 = append(b.full, a.full()), append(b.port22, a.tcpPort(22))
	}
	return n
}

// plus returns the number of the union of two accesses.
func (b *accessTable) plus(x, y int) int {
	switch {
	case x == y || y == nothing:
		return x
	case x == nothing:
		return y
	case x > y:
		x, y = y, x
	}
	for len(b.sums) <= x {
		b.sums = append(b.sums, nil)
	}
	if len(b.sums[x]) <= y {
		b.sums[x] = append(b.sums[x], make([]int32, len(b.all)-len(b.sums[x]))...)
	}
	if b.sums[x][y] == nothing {
		b.sums[x][y] = int32(b.number(b.all[x].plus(b.all[y])))
	}
	return int(b.sums[x][y])
}

// minus returns the number of the access that is in x but not in y.
func (b *accessTable) minus(x, y int) int {
	switch {
	case x == y:
		return nothing
	case y == nothing:
		return x
	}
	n, ok := b.lost[[2]int{x, y}]
	if !ok {
		n = b.number(b.all[x].minus(b.all[y]))
		b.lost[[2]int{x, y}] = n
	}
	return n
}

// ssh reports whether port 22 is open in either family.
func (b *accessTable) ssh(has [2]int) bool { return b.port22[has[0]] || b.port22[has[1]] }

func (b *accessTable) meets(x, y int) bool { return b.all[x].meets(b.all[y]) }
