//go:build !race

package hostiletest

import (
	"flag"
	"fmt"
	"os"
	"testing"
	"time"
)

// duration is the total duration of all attacks.
var duration = flag.Duration("hostile", 0, "attack a server for so long; zero: only compare the routes with the rows")

func TestMain(m *testing.M) {
	if text := os.Getenv(ordersVariable); text != "" {
		if err := attackerMain(text); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	os.Exit(m.Run())
}

// short is the minimum duration of an attack: enough for its connections to open and for some
// changes to be measured.
const short = 800 * time.Millisecond
