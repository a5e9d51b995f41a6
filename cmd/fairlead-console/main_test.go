package main

import (
	"bytes"
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/fairlead-mesh/fairlead/internal/test/porttest"
)

const patience = 20 * time.Second

func TestUsageAndVersionNeedNoConfiguration(t *testing.T) {
	for args, want := range map[string]string{"version": version + "\n", "--help": usage} {
		var out bytes.Buffer
		if err := run(t.Context(), []string{args}, &out, nil); err != nil || out.String() != want {
			t.Errorf("%s: %v, %q", args, err, out.String())
		}
	}
	for args, want := range map[string]string{
		"serve now": `unexpected argument "now"`, "other": `unknown command "other"`,
		"--port 1": "flag provided but not defined: -port", "serve --port 1": "flag provided but not defined: -port",
	} {
		var wrong usageError
		if err := run(t.Context(), strings.Fields(args), nil, nil); !errors.As(err, &wrong) || err.Error() != want {
			t.Errorf("%s: %v", args, err)
		}
	}
}

func TestAWrongConfigurationHindersTheStart(t *testing.T) {
	file := filepath.Join(t.TempDir(), "console.yaml")
	if err := os.WriteFile(file, []byte("coordinator_url: http://127.0.0.1:1\ncookie_secret: short\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, command := range []string{"serve", "health"} {
		for _, args := range [][]string{{"--config", file, command}, {command, "--config", file}} {
			err := run(t.Context(), args, nil, nil)
			if err == nil || !strings.Contains(err.Error(), file+":2: cookie_secret: must have exactly 32 characters, has 5; create one with: openssl rand -hex 16") {
				t.Errorf("%v: %v", args, err)
			}
		}
	}
}

func TestAConsoleOfTheEnvironmentServesAndIsProbed(t *testing.T) {
	addr := porttest.Addr(t)
	missing := []string{"--config", filepath.Join(t.TempDir(), "missing")}
	t.Setenv("FAIRLEAD_CONSOLE_COORDINATOR_URL", "http://127.0.0.1:1")
	t.Setenv("FAIRLEAD_CONSOLE_COOKIE_SECRET", "k3J9x0QmZt7Lw2Rv8NcYb5Ha1Ds6Fg4e")
	t.Setenv("FAIRLEAD_CONSOLE_LISTEN_ADDR", addr)
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	var log bytes.Buffer
	var err error
	go func() { ended <- run(ctx, append(missing, "serve"), nil, &log) }()
	for deadline := time.Now().Add(patience); ; <-time.After(20 * time.Millisecond) {
		if err = run(ctx, append(missing, "health"), nil, nil); err == nil || time.Now().After(deadline) {
			break
		}
	}
	stop()
	if ran := <-ended; err != nil || ran != nil || !strings.Contains(log.String(), "listening") {
		t.Errorf("%v, %v: %s", err, ran, log.String())
	}
	if err := run(t.Context(), append(missing, "health"), nil, nil); err == nil {
		t.Error("a console that has stopped is well")
	}
}
