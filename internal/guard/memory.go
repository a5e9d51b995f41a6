package guard

import (
	"bytes"
	"io/fs"
	"math"
	"path"
	"runtime/debug"
	"strconv"
	"strings"
)

// Memory returns how many bytes of memory this process may use: the minimum of GOMEMLIMIT, the limits of its
// control groups and the machine's memory. root is the file system with /proc and /sys. Values that cannot be
// read set no limit.
func Memory(root fs.FS) int64 {
	least := min(debug.SetMemoryLimit(-1), machineMemory(root))
	groups, _ := fs.ReadFile(root, "proc/self/cgroup")
	for line := range strings.Lines(string(groups)) {
		parts := strings.SplitN(strings.TrimSpace(line), ":", 3) // number:controllers:path
		switch {
		case len(parts) != 3:
		case parts[1] == "": // version 2
			least = min(least, groupMemory(root, "sys/fs/cgroup", parts[2], "memory.max"))
		case parts[1] == "memory":
			least = min(least, groupMemory(root, "sys/fs/cgroup/memory", parts[2], "memory.limit_in_bytes"))
		}
	}
	return least
}

// groupMemory returns the lowest limit of a control group and its ancestors. In a container, the path may be
// that of the host; then only the topmost group exists.
func groupMemory(root fs.FS, mount, group, file string) int64 {
	least := int64(math.MaxInt64)
	for dir := path.Clean("/" + group); ; dir = path.Dir(dir) {
		if text, err := fs.ReadFile(root, path.Join(mount, dir, file)); err == nil {
			if n, err := strconv.ParseInt(string(bytes.TrimSpace(text)), 10, 64); err == nil && n > 0 { // not "max"
				least = min(least, n)
			}
		}
		if dir == "/" {
			return least
		}
	}
}

func machineMemory(root fs.FS) int64 {
	text, _ := fs.ReadFile(root, "proc/meminfo")
	for line := range strings.Lines(string(text)) {
		words := strings.Fields(line) // MemTotal: 24682416 kB
		if len(words) == 3 && words[0] == "MemTotal:" {
			if n, err := strconv.ParseInt(words[1], 10, 64); err == nil && n > 0 && n < math.MaxInt64>>10 {
				return n << 10
			}
		}
	}
	return math.MaxInt64
}
