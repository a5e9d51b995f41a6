package cli

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/fairlead-mesh/fairlead/apiclient"
)

// watchGap is the minimum time between two reads of a list: under load there are hundreds of changes a
// second, which nobody could follow.
const watchGap = 500 * time.Millisecond

// askGap is the time between two reads if events are not available.
const askGap = 2 * time.Second

// watchable adds --watch to a command that shows a list.
func (t *tool) watchable(cmd *cobra.Command) *cobra.Command {
	var on bool
	cmd.Flags().BoolVar(&on, "watch", false, "keep running and update the list when it changes")
	once := cmd.RunE
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if !on {
			return once(cmd, args)
		}
		return t.watchList(cmd.Context(), func() error { return once(cmd, args) })
	}
	return cmd
}

// watchList calls look, which prints a list, again when something has changed.
func (t *tool) watchList(ctx context.Context, look func() error) error {
	client, err := t.connect()
	if err != nil {
		return err
	}
	w := &watch{tool: t, client: client, look: look, screen: t.Stdout}
	f := &follower{tool: t, retry: time.Second, take: w.take, broke: w.beginBelow}
	err = f.follow(ctx)
	var forbidden forbiddenError
	if errors.As(err, &forbidden) && w.next.IsZero() { // the key may read the list, but not the events
		t.note("This API key lacks the scope history and cannot read events; polling every %s instead", askGap)
		return w.ask(ctx)
	}
	return err
}

// ask polls the list. It treats errors like follow: it fails if the server was never reached, and retries if
// the connection is lost later.
func (w *watch) ask(ctx context.Context) error {
	for reached := false; ; {
		err := w.take(ctx, streamedEvent{})
		var broken brokenError
		switch {
		case ctx.Err() != nil:
			return nil
		case err == nil:
			reached = true
		case !reached || !errors.As(err, &broken):
			return err
		default:
			w.note("Connection lost: %v; reconnecting", err)
			w.beginBelow()
		}
		select {
		case <-time.After(askGap):
		case <-ctx.Done():
			return nil
		}
	}
}

// watch shows a list again when it has changed. Everything on the event stream, even a heartbeat, makes it read
// the list again: some values change merely because time passes.
type watch struct {
	*tool
	client *apiclient.Client
	look   func() error // prints the current list, using client
	screen io.Writer
	shown  string          // the last picture
	rows   int             // its height on a terminal
	lines  map[string]bool // its lines, including those that did not fit
	first  int             // number of rows above the first one shown
	seen   string          // the revision of the last read
	next   time.Time
}

// take reads the list again unless the last read already includes the event.
func (w *watch) take(ctx context.Context, e streamedEvent) error {
	revision, _, _ := strings.Cut(e.ID, "-")
	if revision != "" && e.Event != "reset" && !laterRevision(revision, w.seen) {
		return nil
	}
	select {
	case <-time.After(time.Until(w.next)):
		w.next = time.Now().Add(watchGap)
	case <-ctx.Done():
		return ctx.Err()
	}
	w.minRevision = revision
	picture, err := w.picture()
	w.minRevision = ""
	if err != nil || picture == w.shown {
		return err
	}
	w.shown = picture
	return w.draw(picture)
}

// beginBelow keeps the last picture and the notes below it on the terminal, and makes the next picture start
// below them.
func (w *watch) beginBelow() {
	if _, height := w.tool.screen(); height > 0 {
		w.shown, w.rows = "", 0
	}
}

// picture returns what the command prints. On a terminal its notes are included; elsewhere they are dropped.
func (w *watch) picture() (string, error) {
	var text bytes.Buffer
	out, notes := w.Stdout, w.Stderr
	defer func() { w.Stdout, w.Stderr, w.oneLine = out, notes, false }()
	w.Stdout, w.Stderr, w.oneLine = &text, io.Discard, true
	if _, height := w.tool.screen(); height > 0 {
		w.Stderr = &text
	}
	if c, ok := w.client.Client.(*connection); ok {
		c.revision = "" // a list may take several responses; the first is the oldest
		defer func() { w.seen = c.revision }()
	}
	if err := w.look(); err != nil {
		return "", err
	}
	return text.String(), nil
}

// draw replaces the last picture on a terminal. Elsewhere it appends one.
func (w *watch) draw(picture string) error {
	width, height := w.tool.screen()
	if height == 0 {
		switch {
		case w.format == formatYAML:
			picture = "---\n" + picture
		case w.format != formatJSON && w.rows > 0:
			picture = "\n" + picture
		}
		w.rows++
		_, err := io.WriteString(w.screen, picture)
		return err
	}
	lines := strings.Split(strings.TrimSuffix(picture, "\n"), "\n")
	lines = w.window(lines, max(1, height-1))
	for i, line := range lines {
		if !strings.Contains(line, "\x1b") { // only notes can be too wide: a table fits, and its colours have no width
			lines[i] = cut(line, width)
		}
	}
	back := ""
	if w.rows > 0 {
		back = fmt.Sprintf("\x1b[%dA\r\x1b[J", w.rows)
	}
	w.rows = len(lines)
	_, err := io.WriteString(w.screen, back+strings.Join(lines, "\n")+"\n")
	return err
}

// window returns as many lines as fit: the header, the rows around the one that changed last, and a line that
// says which rows these are.
func (w *watch) window(lines []string, fits int) []string {
	text := func(line string) string { return strings.Join(strings.Fields(line), " ") } // ignores changed column widths
	before := w.lines
	w.lines = map[string]bool{}
	changed := 0
	for i, line := range lines {
		if w.lines[text(line)] = true; !before[text(line)] && len(before) > 0 && i > 0 {
			changed = i
		}
	}
	if len(lines) <= fits {
		return lines
	}
	header, rows := lines[:min(1, fits-1)], lines[1:]
	room := max(0, fits-2)
	if changed > 0 {
		w.first = max(changed-room, min(w.first, changed-1))
	}
	w.first = max(0, min(w.first, len(rows)-room))
	last := w.first + room
	return append(append(slices.Clone(header), rows[w.first:last]...), fmt.Sprintf("lines %d to %d of %d", w.first+1, last, len(rows)))
}

// laterRevision reports whether revision a is later than b, or either is not a number.
func laterRevision(a, b string) bool {
	x, errA := strconv.ParseUint(a, 10, 64)
	y, errB := strconv.ParseUint(b, 10, 64)
	return errA != nil || errB != nil || x > y
}
