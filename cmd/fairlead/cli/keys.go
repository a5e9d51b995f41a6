package cli

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/fairlead-mesh/fairlead/apiclient"
	"github.com/fairlead-mesh/fairlead/internal/config"
)

// lifetime is a flag for how long something is valid. If it is not set, the server uses its default.
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

// after returns the end of the lifetime, or nil for the server's default.
func (l *lifetime) after(now time.Time) *time.Time {
	if l.duration == 0 {
		return nil
	}
	return new(now.Add(l.duration).UTC())
}

// keyIDLength is the number of characters in the id of a key.
const keyIDLength = 12

// keyID shortens a key to its id, so that no secret is sent or ends up in the access log of a proxy. A
// masked key and a plain id give the same result.
func keyID(key string) string {
	for _, kind := range []string{"flk_", "flp_"} {
		if rest, ok := strings.CutPrefix(key, kind); ok {
			id, _, _ := strings.Cut(rest, "_")
			return id
		}
	}
	return key
}

// keyForms describes the forms in which commands accept a key.
const keyForms = `Identify a key by its number, its 12-character ID, its masked form as in the
list, or the full key. Only the ID is sent to the server.`

// takesKey accepts a key as the only argument, as an alternative to --key.
func takesKey(key *string) cobra.PositionalArgs {
	return func(_ *cobra.Command, args []string) error {
		switch {
		case len(args) > 1:
			return fmt.Errorf("unexpected argument %q", args[1])
		case len(args) == 1 && *key != "":
			return errors.New("use either the argument <key> or --key, not both")
		case len(args) == 1:
			*key = args[0]
		}
		return nil
	}
}

// takesKeys accepts one or more keys.
func takesKeys(key *string) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		if len(args) < 2 {
			return takesKey(key)(cmd, args)
		}
		switch {
		case *key != "":
			return errors.New("use either the arguments <key>... or --key, not both")
		case slices.Contains(args, ""):
			return errors.New("argument <key> must not be empty")
		}
		return nil
	}
}

// keyFlag adds --key, an alternative to the argument that takesKey accepts.
func keyFlag(cmd *cobra.Command, key *string, completion cobra.CompletionFunc) {
	cmd.Flags().StringVar(key, "key", "", "`key`, instead of the argument")
	complete(cmd, "key", completion)
}

// selectKey returns the id of the key that a command names, and a client.
func (t *tool) selectKey(key string) (client *apiclient.Client, id string, err error) {
	id = keyID(key)
	if id == "" {
		return nil, "", wrongUsage("missing argument <key>")
	}
	client, err = t.connect()
	return client, id, err
}
