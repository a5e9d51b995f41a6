package cli

import (
	"bufio"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/fairlead-mesh/fairlead/apiclient"
)

const (
	// maxSilence is three times the longest interval between two lines that the server sends.
	maxSilence = 45 * time.Second
	maxEvent   = 16 << 20
	maxRetry   = 10 * time.Second
)

func (t *tool) events() *cobra.Command {
	f := &follower{tool: t, retry: time.Second}
	f.take = f.print
	cmd := &cobra.Command{
		Use:   "events",
		Short: "Stream events as they happen",
		Long: `Stream events as they happen: every change, and nodes that connect or
disconnect. The command runs until you interrupt it. If the connection is lost,
it reconnects without missing events.

Each line shows the time, the ID for --after, the event, who caused it, and the
ID and name of the object. With --output json, each line is one event.`,
		Example: `  fairlead events
  fairlead events --output json | jq 'select(.event == "node.online")'
  fairlead events --after 4711-0`,
		Args: takes(),
		RunE: func(cmd *cobra.Command, _ []string) error {
			return f.follow(cmd.Context())
		},
	}
	cmd.Flags().StringVar(&f.last, "after", "", "start after the event with this `ID` instead of now; 0-0 starts with the oldest stored event")
	complete(cmd, "after", cobra.NoFileCompletions)
	return cmd
}

// follower handles events and remembers its position.
type follower struct {
	*tool
	last  string // the id to resume after
	retry time.Duration
	take  func(context.Context, streamedEvent) error // events without data are heartbeats
	broke func()                                     // called after each message that a connection was lost; may be nil
}

// streamedEvent is an event as it is printed for programs.
type streamedEvent struct {
	ID    string          `json:"id"`
	Event string          `json:"event"`
	Data  json.RawMessage `json:"data"`
}

// follow handles events until ctx ends. It fails if the server was never reached, and reconnects if the
// connection is lost later.
func (f *follower) follow(ctx context.Context) error {
	client, err := f.dial()
	if err != nil {
		return err
	}
	if c, ok := client.Client.(*connection); ok {
		c.client.Timeout = 0 // maxSilence applies instead
	}
	wait := f.retry
	for reached := false; ; {
		began, err := f.stream(ctx, client)
		if began {
			reached, wait = true, f.retry
		}
		var broken brokenError
		switch {
		case ctx.Err() != nil:
			return nil
		case !reached || !errors.As(err, &broken):
			return err
		}
		f.note("Connection lost: %v; reconnecting", err)
		if f.broke != nil {
			f.broke()
		}
		select {
		case <-time.After(wait):
			wait = min(2*wait, maxRetry)
		case <-ctx.Done():
			return nil
		}
	}
}

// stream handles the events of one connection; began reports whether the connection was established.
func (f *follower) stream(ctx context.Context, client *apiclient.Client) (began bool, err error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	silence := time.AfterFunc(maxSilence, cancel)
	defer silence.Stop()
	resp, err := client.StreamEvents(ctx, &apiclient.StreamEventsParams{LastEventID: ifSet(f.last)})
	if err != nil {
		return false, err
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		_, err := answer(resp, nil)
		return false, err
	}
	lines := bufio.NewScanner(resp.Body)
	lines.Buffer(nil, maxEvent)
	var e streamedEvent
	for lines.Scan() {
		silence.Reset(maxSilence)
		if err := f.read(ctx, lines.Text(), &e); err != nil {
			return true, err
		}
	}
	return true, brokenError{cmp.Or(lines.Err(), io.ErrUnexpectedEOF)}
}

// read handles one line of a stream; e collects an event, which an empty line completes.
func (f *follower) read(ctx context.Context, line string, e *streamedEvent) error {
	field, value, _ := strings.Cut(line, ":")
	value = strings.TrimPrefix(value, " ")
	switch {
	case line == "":
		ended := *e
		*e = streamedEvent{}
		if err := f.take(ctx, ended); err != nil {
			return err
		}
		f.last = cmp.Or(ended.ID, f.last) // only now has it been handled
	case field == "id":
		e.ID = value
	case field == "event":
		e.Event = value
	case field == "data":
		e.Data = json.RawMessage(value)
	case field == "retry":
		if ms, err := strconv.Atoi(value); err == nil && ms > 0 {
			f.retry = min(time.Duration(ms)*time.Millisecond, maxRetry)
		}
	}
	return nil
}

func (f *follower) print(_ context.Context, e streamedEvent) error {
	if e.Data == nil {
		return nil
	}
	if f.format == formatJSON {
		line, err := json.Marshal(e)
		if err != nil {
			return fmt.Errorf("cannot parse event %s: %w; compare the versions with: fairlead version", e.ID, err)
		}
		_, err = fmt.Fprintf(f.Stdout, "%s\n", line)
		return err
	}
	c, err := decode[apiclient.Change](e.Data, nil)
	if err != nil {
		return err
	}
	text := fmt.Sprintf("%s  %-8s %-18s %-18s %-6s %s\n", timeText(c.At), cell(e.ID), cell(e.Event), cell(actorText(c.Actor)), cell(c.Object), cell(cmp.Or(nameIn(c.After), nameIn(c.Before))))
	if e.Event == "reset" {
		text = "Some events are no longer stored; continuing with new ones\n"
	}
	if f.format == formatYAML {
		if _, err := io.WriteString(f.Stdout, "---\n"); err != nil {
			return err
		}
	}
	return f.show(e, text)
}
