package doccheck

import (
	"os"
	"regexp"
	"strings"
)

// Commands returns the shell commands in a section of a document, in order, so that tests can run what readers are told to
// run. A command on several lines is joined.
func Commands(file, heading string) ([]string, error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	_, section, _ := strings.Cut(string(text), "\n## "+heading+"\n")
	section, _, _ = strings.Cut(section, "\n## ")
	var commands []string
	for _, block := range regexp.MustCompile("(?ms)^ *```sh\n(.*?)^ *```$").FindAllStringSubmatch(section, -1) {
		for line := range strings.Lines(strings.ReplaceAll(block[1], "\\\n", "")) {
			if line = strings.Join(strings.Fields(line), " "); line != "" {
				commands = append(commands, line)
			}
		}
	}
	return commands, nil
}
