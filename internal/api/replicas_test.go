package api_test

import (
	"fmt"
	"strconv"
	"testing"
	"time"

	"github.com/fairlead-mesh/fairlead/internal/control"
	"github.com/fairlead-mesh/fairlead/internal/mesh"
)

// replicas starts two services on one database.
func replicas(t *testing.T) (a, b *service) {
	t.Helper()
	name := postgres(t).Database(t)
	return start(t, openPostgres(t, name)).listen(), start(t, openPostgres(t, name)).listen()
}

func TestKeyMadeOnOneReplicaOpensAnotherAtOnce(t *testing.T) {
	a, b := replicas(t)
	for i := range 20 {
		_, key := a.newKey()
		b.call("GET", "/api/v1/user", nil, "Authorization: Bearer "+key).ok()
		b.call("POST", "/api/v1/apikey/expire", object{"key": key}).ok()
		preAuth := b.preAuthKey(object{"aclTags": []string{"tag:a"}})
		a.register(machine(uint64(i), preAuth)).ok()
		b.rejected(b.register(machine(uint64(100+i), preAuth)), keySpent)
	}
}

func TestThingsMadeOnOneReplicaAreFoundOnAnotherAtOnce(t *testing.T) {
	a, b := replicas(t)
	for i := range 20 {
		name := fmt.Sprintf("user%d", i)
		a.newUser(name)
		b.call("GET", "/api/v1/node?user="+name, nil).ok()
		id := b.register(machine(uint64(i), b.preAuthKey(object{"user": name}))).ok()["node"].(object)["id"].(string)
		a.call("GET", "/api/v1/node/"+id, nil).ok()
	}
}

func TestOwnWriteIsReadOnAnotherReplica(t *testing.T) {
	a, b := replicas(t)
	for i := range 20 {
		name := fmt.Sprintf("user%d", i)
		rev := a.call("POST", "/api/v1/user", object{"name": name}).header.Get("Mesh-Revision")
		users := b.call("GET", "/api/v1/user?name="+name, nil, "Mesh-Min-Revision: "+rev).ok()["users"].([]any)
		if len(users) != 1 {
			t.Fatalf("user %s at revision %s is not there", name, rev)
		}
		a, b = b, a
	}
}

// Observations are not committed; replicas exchange them with the heartbeat.
func TestObservationsOfOneReplicaAreShownByAnother(t *testing.T) {
	a, b := replicas(t)
	a.newUser("alice")
	a.register(machine(1, a.preAuthKey(object{"user": "alice"}))).ok()
	id, key := a.newKey()
	rev := a.call("GET", "/api/v1/user", nil, "Authorization: Bearer "+key).header.Get("Mesh-Revision")
	a.control.Observations.Observe(1, control.Measured{Latencies: []mesh.Latency{{Region: 7, Micros: 12500}}})
	deadline := time.Now().Add(15 * time.Second)
	for {
		host := b.call("GET", "/api/v1/node/1", nil, "Mesh-Min-Revision: "+rev).ok()["node"].(object)["host"].(object)
		var used any
		for _, k := range b.call("GET", "/api/v1/apikey", nil).ok()["apiKeys"].([]any) {
			if k.(object)["id"] == id {
				used = k.(object)["lastSeen"]
			}
		}
		if near := host["latencies"].([]any); used != nil && len(near) == 1 && near[0].(object)["milliseconds"] == 12.5 {
			break
		}
		if time.Now().After(deadline) {
			t.Fatalf("the key was used at %v; %v", used, host)
		}
	}
	if got := strconv.FormatInt(int64(b.ledger.World().Rev), 10); got != rev {
		t.Errorf("it was committed, by revision %s after %s", got, rev)
	}
}

func TestReplicasReportTheSameDigest(t *testing.T) {
	a, b := replicas(t)
	rev := a.call("POST", "/api/v1/user", object{"name": "alice"}).header.Get("Mesh-Revision")
	digest := func(s *service) object {
		return s.call("GET", "/api/v1/debug/digest", nil, "Mesh-Min-Revision: "+rev).ok()
	}
	if one, other := digest(a), digest(b); one["digest"] != other["digest"] || one["revision"] != rev || one["replica"] == other["replica"] {
		t.Errorf("%v and %v", one, other)
	}
	deadline := time.Now().Add(15 * time.Second)
	for len(digest(a)["replicas"].([]any)) < 2 {
		if time.Now().After(deadline) {
			t.Fatalf("replicas do not hear of each other: %v", digest(a))
		}
	}
}
