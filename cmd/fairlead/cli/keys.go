package cli

import (
	"strings"
	"time"

	"github.com/fairlead-mesh/fairlead/apiclient"
	"github.com/fairlead-mesh/fairlead/internal/config"
)

// lifetime is a flag for how long a key can be used. The server chooses when it
// is not set.
type lifetime struct {
	text     string
	duration time.Duration
}

func (l *lifetime) String() string { return l.text }
func (l *lifetime) Type() string   { return "duration" }

func (l *lifetime) Set(s string) error {
	duration, err := config.ParseDuration(s)
	*l = lifetime{text: s, duration: duration}
	return err
}

// after returns the end of the lifetime, nil when the server chooses.
func (l *lifetime) after(now time.Time) *time.Time {
	if l.duration == 0 {
		return nil
	}
	return new(now.Add(l.duration).UTC())
}

// keyID cuts a key down to the id it is known by, so that no secret travels or
// ends up in the access log of a proxy. Masked and bare ids come out alike.
func keyID(key string) string {
	for _, kind := range []string{"flk_", "flp_"} {
		if rest, ok := strings.CutPrefix(key, kind); ok {
			id, _, _ := strings.Cut(rest, "_")
			return id
		}
	}
	return key
}

// selectKey connects for a command about the key that --key names.
func (t *tool) selectKey(key string) (client *apiclient.Client, id string, err error) {
	id = keyID(key)
	if id == "" {
		return nil, "", wrongUsage("--key is missing")
	}
	client, err = t.connect()
	return client, id, err
}
