//go:build !race

package deploytest

import (
	"fmt"
	"net/http"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"
)

// testDisk checks the deployment's disk targets under 100 writes per second for ten seconds: server
// and database together transfer less than 10 MB/s to and from the disk, and no query takes a second.
// Other tests run at the same time and can stop a process for longer than that, so the best of three attempts counts.
func testDisk(t *testing.T, s *Stack) {
	s = s.In(t)
	key := strings.TrimSpace(s.Exec("fairlead", "fairlead", "apikeys", "create"))
	var slow float64
	for attempt := range 3 {
		if slow = writeUsers(t, s, key, fmt.Sprintf("writer%d-", attempt)); slow == 0 {
			return
		}
	}
	t.Errorf("%v queries took more than a second", slow)
}

// writeUsers creates users for ten seconds and returns how many queries took longer than a second.
func writeUsers(t *testing.T, s *Stack, key, prefix string) (slow float64) {
	t.Helper()
	const rate, length = 100, 10 * time.Second
	url := "http://" + s.Addr("PROXY_DEV_PUBLISH") + "/api/v1/user"
	queries := func() (all, slow float64) {
		metrics := content(t, "http://"+s.Addr("METRICS_PUBLISH")+"/metrics")
		all = sample(t, metrics, "mesh_db_query_duration_seconds_count")
		return all, all - sample(t, metrics, `mesh_db_query_duration_seconds_bucket{le="1"}`)
	}
	allBefore, slowBefore := queries()
	before, begin := diskBytes(t, s, "fairlead", "db"), time.Now()
	tick := time.NewTicker(time.Second / rate)
	defer tick.Stop()
	written := 0
	for time.Since(begin) < length {
		<-tick.C
		if status, body := send(t, http.MethodPost, url, key, map[string]string{"name": fmt.Sprint(prefix, written)}); status != http.StatusOK {
			t.Fatalf("creating a user: %d\n%s", status, body)
		}
		written++
	}
	moved, took := diskBytes(t, s, "fairlead", "db")-before, time.Since(begin)
	perSecond := float64(moved) / took.Seconds()
	t.Logf("%.0f writes/s: %.2f MB/s of disk", float64(written)/took.Seconds(), perSecond/1e6)
	if perSecond >= 10e6 {
		t.Errorf("disk: %.1f MB/s, want under 10", perSecond/1e6)
	}
	allAfter, slowAfter := queries()
	if allAfter-allBefore < float64(written) {
		t.Errorf("%v queries were measured for %d writes", allAfter-allBefore, written)
	}
	return slowAfter - slowBefore
}

// diskBytes returns how many bytes the processes of the containers have read from the disk and written
// since they started. The kernel's write_bytes is useless here, because it counts a whole run of
// cached pages for every byte changed in it. The wchar used instead also includes writes to sockets.
func diskBytes(t *testing.T, s *Stack, services ...string) (sum int64) {
	t.Helper()
	for _, service := range services {
		lines := strings.Split(strings.TrimSpace(s.run(s.Dir, docker, "top", s.ContainerID(service), "-eo", "pid")), "\n")
		for _, pid := range lines[1:] {
			io, err := os.ReadFile("/proc/" + strings.TrimSpace(pid) + "/io")
			if err != nil {
				continue // the process has exited
			}
			for line := range strings.Lines(string(io)) {
				name, value, _ := strings.Cut(strings.TrimSpace(line), ": ")
				if name == "read_bytes" || name == "wchar" {
					n, err := strconv.ParseInt(value, 10, 64)
					if err != nil {
						t.Fatal(err)
					}
					sum += n
				}
			}
		}
	}
	return sum
}

// sample returns the value of one series in the metrics text.
func sample(t *testing.T, metrics, series string) float64 {
	t.Helper()
	for line := range strings.Lines(metrics) {
		if value, ok := strings.CutPrefix(line, series+" "); ok {
			n, err := strconv.ParseFloat(strings.TrimSpace(value), 64)
			if err != nil {
				t.Fatal(err)
			}
			return n
		}
	}
	t.Fatalf("no %s among the metrics", series)
	return 0
}
