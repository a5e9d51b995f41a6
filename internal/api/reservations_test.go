package api_test

import "testing"

// reservation reserves a name and addresses for a device of the fixture's user.
func (f fixture) reservation(name string) *answer {
	return f.call("POST", "/api/v1/reservation", object{"name": name, "hostname": "Kept", "user": f.user, "ipv4": "100.64.99.7", "ipv6": "fd7a:115c:a1e0::9907"})
}

func TestReservationsAreCreatedListedAndDeleted(t *testing.T) {
	f := populated(t, sqlite(t))
	made := f.reservation("kept").ok()["reservation"].(object)
	list := f.call("GET", "/api/v1/reservation", nil).ok()["reservations"].([]any)
	if len(list) != 1 || list[0].(object)["ipv4"] != "100.64.99.7" || list[0].(object)["user"] != made["user"] {
		t.Errorf("%v", list)
	}
	if a := f.reservation("kept"); a.status != 409 {
		t.Errorf("the same name again: %d", a.status)
	}
	if a := f.call("POST", "/api/v1/reservation", object{"name": "x", "user": f.user, "ipv4": "none"}); a.status != 400 {
		t.Errorf("an invalid address: %d", a.status)
	}
	f.call("DELETE", "/api/v1/reservation/"+made["id"].(string), nil).ok()
	if a := f.call("DELETE", "/api/v1/reservation/kept", nil); a.status != 404 {
		t.Errorf("deleted again: %d", a.status)
	}
	kinds := map[string]int{}
	for _, row := range f.audit() {
		if row.Kind == "reservation" {
			kinds[row.Verb]++
		}
	}
	if kinds["created"] != 1 || kinds["deleted"] != 1 {
		t.Errorf("audit log: %v", kinds)
	}
}
