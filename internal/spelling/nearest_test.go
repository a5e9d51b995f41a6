package spelling

import "testing"

func TestNearestIsTheFirstWithTheFewestEdits(t *testing.T) {
	known := []string{"user", "users", "Output", "no-user"}
	for _, c := range []struct {
		name string
		most int
		want string
	}{
		{"usr", 1, "user"},
		{"usres", 3, "user"},
		{"userss", 3, "users"},
		{"output", 0, "Output"},
		{"usr", 0, ""},
		{"elsewhere", 3, ""},
		{"", 1, ""},
	} {
		if got := Nearest(c.name, known, c.most); got != c.want {
			t.Errorf("%q within %d edits: got %q, want %q", c.name, c.most, got, c.want)
		}
	}
}
