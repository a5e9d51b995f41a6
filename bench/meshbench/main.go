package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/signal"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"
)

const usage = `usage: meshbench <command> [flags]

Load scenarios (each registers --n nodes first; separate several with commas):
  register    nodes join, --concurrency at a time, until every node knows its peers
  idle        server memory and CPU with all nodes connected and idle
  fanout      single endpoint changes, joins, logouts and drops, one at a time
  churn       --rate endpoint changes per second for --churn-for
  reconnect   all nodes lose their connections and reconnect at once
  api         GET requests to the admin API, --api-concurrency at a time
  lists       lists of nodes, half complete, half paginated, during --rate changes per second
  scim        an identity provider pushes --scim-users users and --scim-groups groups
  all         register,idle,fanout,churn,reconnect,api

Reference:
  refserver   minimal Noise and HTTP/2 server that builds each map message once for all nodes

One JSON line per scenario goes to standard output, a table to standard error.
meshbench <command> -h lists the flags.
`

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, os.Args[1:], os.Stdout, os.Stderr); err != nil && !errors.Is(err, flag.ErrHelp) {
		fmt.Fprintln(os.Stderr, "meshbench:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string, out, log io.Writer) error {
	if len(args) == 0 {
		return errors.New("missing command: see meshbench help")
	}
	if err := raiseFileLimit(); err != nil {
		return err
	}
	switch args[0] {
	case "refserver":
		return refServer(ctx, args[1:], log)
	case "help", "-h", "--help":
		_, err := fmt.Fprint(out, usage)
		return err
	}
	cfg, err := parseFlags(args[0], args[1:], log)
	if err != nil {
		return err
	}
	return (&bench{config: cfg, out: out, log: log}).run(ctx)
}

func raiseFileLimit() error {
	var limit syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &limit); err != nil {
		return err
	}
	limit.Cur = limit.Max
	return syscall.Setrlimit(syscall.RLIMIT_NOFILE, &limit)
}

// config holds the values of the flags.
type config struct {
	scenarios []string
	url       string
	authKeys  []string
	visible   [][]int // visible[i] lists the auth keys whose nodes a node of key i sees; nil means all
	apiKey    string
	apiPaths  []string
	label     string

	nodes         int
	concurrency   int
	registerFirst bool
	readEvery     int
	repeat        int
	changes       int
	pause         time.Duration
	joins         int
	drops         int
	rates         []float64
	churnFor      time.Duration
	idleFor       time.Duration
	apiFor        time.Duration
	apiConns      int
	listsFor      time.Duration
	listsTurns    int
	listsRate     float64
	scimUsers     int
	scimGroups    int
	scimOwners    int
	scimConns     int

	dials          int
	stepLimit      time.Duration
	requestTimeout time.Duration
	quiet          time.Duration
	idleAfter      time.Duration
	serverPID      int
	dbPID          int
	seed           uint64
}

func parseFlags(command string, args []string, log io.Writer) (config, error) {
	var c config
	fs := flag.NewFlagSet(command, flag.ContinueOnError)
	fs.SetOutput(log)
	fs.StringVar(&c.url, "url", "", "base `URL` of the server, or those of its replicas, separated by commas")
	keys := fs.String("auth-key", "", "reusable auth `key`, or several separated by commas, used in turn")
	visibility := fs.String("visibility", "", "`file` with one line per auth key: the indexes, from 0, of the keys whose nodes it sees (default all)")
	fs.StringVar(&c.apiKey, "api-key", "", "bearer `token` for the api scenario")
	apiPaths := fs.String("api-paths", "/api/v1/user,/api/v1/node", "`paths` for the api scenario")
	fs.StringVar(&c.label, "label", "", "`text` copied into every result")
	fs.IntVar(&c.nodes, "n", 100, "virtual nodes")
	fs.IntVar(&c.concurrency, "concurrency", 64, "concurrent registrations")
	fs.BoolVar(&c.registerFirst, "register-first", false, "open the streams only after all nodes are registered and updated, --concurrency of them at a time")
	fs.IntVar(&c.readEvery, "read-every", 1, "of nodes that reconnect, read the peers in the large maps of every `K`th only; the others assume that theirs are complete")
	fs.IntVar(&c.repeat, "repeat", 1, "run the scenarios after register this many times")
	fs.IntVar(&c.changes, "changes", 20, "fanout: endpoint changes")
	fs.DurationVar(&c.pause, "pause", time.Second, "fanout: maximum random pause between endpoint changes; what the server does meanwhile counts")
	fs.IntVar(&c.joins, "joins", 3, "fanout: join and logout cycles")
	fs.IntVar(&c.drops, "drops", 0, "fanout: nodes that disappear without closing their connections")
	rates := fs.String("rate", "10", "churn: changes per second, or several `rates` separated by commas, one after the other")
	fs.DurationVar(&c.churnFor, "churn-for", 15*time.Second, "churn: duration")
	fs.DurationVar(&c.idleFor, "idle-for", 10*time.Second, "idle: duration")
	fs.DurationVar(&c.apiFor, "api-for", 5*time.Second, "api: duration per path")
	fs.IntVar(&c.apiConns, "api-concurrency", 16, "api: connections")
	fs.DurationVar(&c.listsFor, "lists-for", 15*time.Second, "lists: duration of each of the four windows (idle, changes, lists, both)")
	fs.IntVar(&c.listsTurns, "lists-turns", 1, "lists: how often the four windows are repeated")
	fs.Float64Var(&c.listsRate, "lists-rate", 100, "lists: requests per second")
	fs.IntVar(&c.scimUsers, "scim-users", 1000, "scim: users person-0000, person-0001 and so on to push")
	fs.IntVar(&c.scimGroups, "scim-groups", 50, "scim: groups team-00, team-01 and so on to push")
	fs.IntVar(&c.scimOwners, "scim-owners", 0, "scim: how many of the users have nodes; the first auth keys are theirs, in order")
	fs.IntVar(&c.scimConns, "scim-concurrency", 4, "scim: connections")
	fs.IntVar(&c.dials, "dials", 64, "how many nodes may connect and send their first request at a time; nodes that wait for the response do not count")
	fs.DurationVar(&c.stepLimit, "step-limit", 20*time.Minute, "register, reconnect: give up if not all nodes have converged after this time")
	fs.DurationVar(&c.requestTimeout, "request-timeout", time.Minute, "timeout of one request")
	fs.DurationVar(&c.idleAfter, "idle-after", 0, "idle: time without messages other than keep-alives after which nodes are measured, if longer than --quiet")
	fs.DurationVar(&c.quiet, "quiet", 3*time.Second, "time without messages other than keep-alives after which the nodes count as settled")
	fs.IntVar(&c.serverPID, "server-pid", 0, "measure this server `process`")
	fs.IntVar(&c.dbPID, "db-pid", 0, "measure this database `process` and its children")
	fs.Uint64Var(&c.seed, "seed", 1, "seed for random choices")
	if err := fs.Parse(args); err != nil {
		return c, err
	}
	c.url = strings.TrimRight(c.url, "/")
	c.apiPaths = strings.Split(*apiPaths, ",")
	if *keys != "" {
		c.authKeys = strings.Split(*keys, ",")
	}
	for text := range strings.SplitSeq(*rates, ",") {
		rate, err := strconv.ParseFloat(text, 64)
		if err != nil || rate <= 0 {
			return c, fmt.Errorf("invalid --rate %s: use changes per second, such as 10 or 10,50", *rates)
		}
		c.rates = append(c.rates, rate)
	}
	if *visibility != "" {
		var err error
		if c.visible, err = readVisibility(*visibility, len(c.authKeys)); err != nil {
			return c, err
		}
	}
	return c, c.choose(command)
}

// choose sets the scenarios and returns an error if a flag that they need is missing.
func (c *config) choose(command string) error {
	all := []string{"register", "idle", "fanout", "churn", "reconnect", "api"}
	c.scenarios = strings.Split(command, ",")
	if command == "all" {
		c.scenarios = all
	}
	for _, s := range c.scenarios {
		if s != "lists" && s != "scim" && !slices.Contains(all, s) {
			return fmt.Errorf("unknown command %q: see meshbench help", s)
		}
	}
	switch {
	case c.url == "":
		return errors.New("missing --url")
	case (c.wants("api") && command != "all" || c.wants("lists") || c.wants("scim")) && c.apiKey == "":
		return errors.New("missing --api-key")
	case c.needsNodes() && len(c.authKeys) == 0:
		return errors.New("missing --auth-key")
	case c.nodes < 2 || c.concurrency < 1 || c.changes < 1 || c.readEvery < 1 || c.dials < 1:
		return errors.New("--n must be 2 or more, --concurrency, --changes, --read-every and --dials 1 or more")
	case c.scimUsers < 1 || c.scimGroups < 1 || c.scimConns < 1 || c.scimOwners < 0 || c.scimOwners > min(c.scimUsers, len(c.authKeys)):
		return errors.New("--scim-users, --scim-groups and --scim-concurrency must be 1 or more, --scim-owners at most the number of users and of auth keys")
	case c.listsTurns < 1 || c.listsRate <= 0:
		return errors.New("--lists-turns must be 1 or more, --lists-rate more than 0")
	}
	return nil
}

func (c *config) wants(scenario string) bool { return slices.Contains(c.scenarios, scenario) }

// needsNodes reports whether any scenario other than api runs.
func (c *config) needsNodes() bool { return !slices.Equal(c.scenarios, []string{"api"}) }

// bench is one run of meshbench.
type bench struct {
	config
	out, log io.Writer
	meter    *meter
	random   *rand.Rand
	emptyRSS int64 // resident memory of the server before any node connected, in KiB
}

func (b *bench) run(ctx context.Context) error {
	seen := new(traffic)
	b.meter = &meter{serverPID: b.serverPID, dbPID: b.dbPID, traffic: seen}
	b.random = rand.New(rand.NewPCG(b.seed, 0))
	b.emptyRSS, _ = residentKiB(b.serverPID)
	if !b.needsNodes() {
		return b.api(ctx)
	}
	t, err := newTarget(ctx, b.url, seen, b.dials)
	if err != nil {
		return err
	}
	c := newCluster(t, b.config, b.joins*b.repeat)
	defer c.cut()
	if err := b.register(ctx, c); err != nil {
		return err
	}
	for range b.repeat {
		if err := b.afterRegister(ctx, c); err != nil {
			return err
		}
	}
	return nil
}

func (b *bench) afterRegister(ctx context.Context, c *cluster) error {
	steps := []struct {
		scenario string
		run      func(context.Context, *cluster) error
	}{
		{"idle", b.idle},
		{"fanout", b.fanout},
		{"churn", b.churn},
		{"reconnect", b.reconnect},
		{"lists", b.lists},
		{"scim", b.scim},
		{"api", func(ctx context.Context, _ *cluster) error { return b.api(ctx) }},
	}
	for _, step := range steps {
		if !b.wants(step.scenario) || step.scenario == "api" && b.apiKey == "" {
			continue
		}
		if err := step.run(ctx, c); err != nil {
			return fmt.Errorf("%s: %w", step.scenario, err)
		}
	}
	return nil
}

func (b *bench) progress(format string, args ...any) {
	fmt.Fprintf(b.log, "   … "+format+"\n", args...)
}

// pause waits, or returns the error of ctx.
func pause(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-timer.C:
		return nil
	}
}
