//go:build chaosfault

package sqlstore

import "os"

func faultSkipHeadLock() bool { return os.Getenv("CHAOS_FAULT") == "skip-head-lock" }
