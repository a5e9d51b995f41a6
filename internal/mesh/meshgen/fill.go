package meshgen

import (
	"fmt"
	"net/netip"
	"reflect"

	"tailscale.com/types/key"

	"github.com/fairlead-mesh/fairlead/internal/mesh"
)

// Fill returns an event of the same type about the object with id 1, with every field set,
// each to a different value. Tests then notice any field that gets lost, even one that
// Event does not generate.
func Fill(e mesh.Event) mesh.Event {
	v := reflect.New(reflect.TypeOf(e)).Elem()
	n := 1
	fill(v, &n)
	if v.NumField() > 0 {
		first := v.Field(0)
		if first.Kind() == reflect.Pointer {
			first = first.Elem().Field(0) // a noun starts with its id
		}
		if first.Kind() == reflect.Int64 {
			first.SetInt(1)
		}
	}
	return v.Interface().(mesh.Event)
}

// fill sets a value and the values inside it. n is incremented for each.
func fill(v reflect.Value, n *int) {
	*n++
	switch p := v.Addr().Interface().(type) {
	case *netip.Addr:
		*p = netip.AddrFrom4([4]byte{100, 64, 0, byte(*n)})
		return
	case *netip.Prefix:
		*p = netip.PrefixFrom(netip.AddrFrom4([4]byte{10, byte(*n), 0, 0}), 16)
		return
	case *netip.AddrPort:
		*p = netip.AddrPortFrom(netip.AddrFrom4([4]byte{192, 0, 2, byte(*n)}), 41641)
		return
	case *key.MachinePublic:
		*p = MachineKey(uint64(*n))
		return
	case *key.NodePublic:
		*p = NodeKey(uint64(*n))
		return
	case *key.DiscoPublic:
		*p = DiscoKey(uint64(*n))
		return
	case *mesh.Secret:
		p[0] = byte(*n)
		return
	}
	switch v.Kind() {
	case reflect.Bool:
		v.SetBool(true)
	case reflect.Int, reflect.Int64:
		v.SetInt(int64(*n))
	case reflect.String:
		v.SetString(fmt.Sprintf("text %d", *n))
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		fill(v.Elem(), n)
	case reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), 2, 2))
		for i := range v.Len() {
			fill(v.Index(i), n)
		}
	case reflect.Struct:
		for i := range v.NumField() {
			fill(v.Field(i), n)
		}
	default:
		panic(fmt.Sprintf("meshgen cannot fill a %v", v.Type()))
	}
}
