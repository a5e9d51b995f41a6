package pgtest

import (
	"errors"
	"fmt"
	"os"
	"time"
)

// ArchiveArgs returns the settings with which a server archives its write-ahead log,
// beside its data directory. RestoreTo reads it from there.
func ArchiveArgs() []string {
	return []string{"-c", "archive_mode=on", "-c", "archive_command=mkdir -p ../archive && cp %p ../archive/%f"}
}

// BaseBackup copies a running server. The copy is stopped until RestoreTo starts it.
func (s *Server) BaseBackup() (*Server, error) {
	dir, err := os.MkdirTemp("/dev/shm", "fairlead-pg-")
	if err != nil {
		return nil, err
	}
	backup := &Server{Host: s.Host, User: s.User, Pass: s.Pass, Dir: dir, owned: true, bin: s.bin, primary: s}
	if err := backup.clone(); err != nil {
		backup.remove()
		return nil, err
	}
	return backup, nil
}

// RestoreTo starts a base backup as a primary, with the state that the running original
// had at a moment.
func (s *Server) RestoreTo(at time.Time) error {
	var segment string
	if err := s.primary.ask(&segment, "SELECT pg_walfile_name(pg_switch_wal())"); err != nil {
		return err
	}
	if err := s.primary.until("SELECT coalesce(last_archived_wal, '') >= '"+segment+"' FROM pg_stat_archiver", true); err != nil {
		return err
	}
	err := s.write("postgresql.auto.conf", fmt.Sprintf(
		"restore_command = 'cp %s/archive/%%f %%p'\nrecovery_target_time = '%s'\nrecovery_target_action = 'promote'\n",
		s.primary.Dir, at.UTC().Format("2006-01-02 15:04:05.000000+00")))
	if err := errors.Join(err, s.write("recovery.signal", "")); err != nil {
		return err
	}
	if err := s.Resume(); err != nil {
		return err
	}
	return s.until("SELECT pg_is_in_recovery()", false)
}
