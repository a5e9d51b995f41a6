package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"
)

const ticksPerSecond = 100 // USER_HZ, the unit of CPU times in /proc

// meter measures the resources that the server, its database and meshbench itself use between start and stop.
// It omits processes whose PID is not set.
type meter struct {
	serverPID, dbPID int
	traffic          *traffic

	began                            time.Time
	server, db, self, machine        float64 // CPU seconds at the start
	serverWritten, dbWritten         int64   // bytes
	wire, bytes, messages, keepAlive int64
}

// start begins an interval and resets the server's peak memory.
func (m *meter) start() {
	if m.serverPID > 0 {
		// If the kernel does not allow this, the peak covers the whole lifetime of the process.
		_ = os.WriteFile(fmt.Sprintf("/proc/%d/clear_refs", m.serverPID), []byte("5"), 0)
	}
	m.began = time.Now()
	m.server, m.db, m.self, m.machine = processCPU(m.serverPID), treeCPU(m.dbPID), ownCPU(), machineCPU()
	m.serverWritten, m.dbWritten = treeWritten(m.serverPID), treeWritten(m.dbPID)
	m.wire, m.bytes = m.traffic.wireBytes.Load(), m.traffic.mapBytes.Load()
	m.messages, m.keepAlive = m.traffic.messages.Load(), m.traffic.keepAlives.Load()
}

// serverCPU returns the CPU time that the server used since the start.
func (m *meter) serverCPU() float64 { return processCPU(m.serverPID) - m.server }

// stop writes the interval's costs into r.
func (m *meter) stop(r result) {
	wall := time.Since(m.began).Seconds()
	r["wall_s"] = round(wall, 3)
	others := machineCPU() - m.machine
	if m.serverPID > 0 {
		cpu := m.serverCPU()
		others -= cpu
		r["server_cpu_s"] = round(cpu, 2)
		r["server_cpu_pct"] = round(100*cpu/wall, 1)
		rss, peak := residentKiB(m.serverPID)
		r["server_rss_mb"] = round(float64(rss)/1024, 1)
		r["server_peak_rss_mb"] = round(float64(peak)/1024, 1)
		r["server_written_mb"] = round(float64(treeWritten(m.serverPID)-m.serverWritten)/(1<<20), 2)
	}
	if m.dbPID > 0 {
		cpu := treeCPU(m.dbPID) - m.db
		others -= cpu
		r["db_cpu_s"] = round(cpu, 2)
		r["db_written_mb"] = round(float64(treeWritten(m.dbPID)-m.dbWritten)/(1<<20), 2)
	}
	own := ownCPU() - m.self
	r["generator_cpu_s"] = round(own, 2)
	// The CPU use of everything else on the machine, in percent of one core, shows how reliable the measured
	// times are.
	r["other_cpu_pct"] = round(100*max(others-own, 0)/wall, 0)
	r["wire_bytes"] = m.traffic.wireBytes.Load() - m.wire
	r["map_bytes"] = m.traffic.mapBytes.Load() - m.bytes
	r["map_messages"] = m.traffic.messages.Load() - m.messages
	r["keep_alives"] = m.traffic.keepAlives.Load() - m.keepAlive
}

func ownCPU() float64 {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		return 0
	}
	return float64(u.Utime.Nano()+u.Stime.Nano()) / 1e9
}

// processStat returns the fields of /proc/PID/stat after the command name, or nil if the process has ended.
func processStat(pid int) []string {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return nil
	}
	return strings.Fields(string(text[strings.LastIndexByte(string(text), ')')+1:]))
}

// ticks returns the sum of the given fields, which are CPU times of /proc/PID/stat or /proc/stat.
func ticks(stat []string, fields ...int) (seconds float64) {
	for _, i := range fields {
		if i < len(stat) {
			v, _ := strconv.ParseFloat(stat[i], 64)
			seconds += v / ticksPerSecond
		}
	}
	return seconds
}

func processCPU(pid int) float64 { return ticks(processStat(pid), 11, 12) }

// treeCPU returns the CPU time of a process, its children and the children it reaped.
func treeCPU(pid int) float64 {
	total := ticks(processStat(pid), 11, 12, 13, 14)
	for _, child := range children(pid) {
		total += processCPU(child)
	}
	return total
}

func children(pid int) (found []int) {
	if pid == 0 {
		return nil
	}
	stats, _ := filepath.Glob("/proc/[0-9]*/stat")
	for _, name := range stats {
		child, _ := strconv.Atoi(strings.Split(name, "/")[2])
		if stat := processStat(child); len(stat) > 1 && stat[1] == strconv.Itoa(pid) {
			found = append(found, child)
		}
	}
	return found
}

// treeWritten returns the bytes that a process, its children and the children it reaped wrote to disk.
func treeWritten(pid int) (total int64) {
	for _, p := range append(children(pid), pid) {
		total += member(fmt.Sprintf("/proc/%d/io", p), "write_bytes:")
	}
	return total
}

// residentKiB returns the current and the peak resident memory of a process.
func residentKiB(pid int) (now, peak int64) {
	status := fmt.Sprintf("/proc/%d/status", pid)
	return member(status, "VmRSS:"), member(status, "VmHWM:")
}

// member returns the number that follows a name in a file of /proc, or 0 if there is none.
func member(file, name string) int64 {
	text, _ := os.ReadFile(file)
	for line := range strings.Lines(string(text)) {
		if fields := strings.Fields(line); len(fields) > 1 && fields[0] == name {
			v, _ := strconv.ParseInt(fields[1], 10, 64)
			return v
		}
	}
	return 0
}

// machineCPU returns the CPU seconds that all processes used since boot.
func machineCPU() float64 {
	text, _ := os.ReadFile("/proc/stat")
	line, _, _ := strings.Cut(string(text), "\n")
	return ticks(strings.Fields(line), 1, 2, 3, 6, 7, 8) // everything except idle and iowait
}
