package cli

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

// maxExport limits the size of one file of an export. The list of ten thousand devices has about 20 MB.
const maxExport = 128 << 20

// tailnet is what the files of an export from Tailscale contain. Its API names the fields.
type tailnet struct {
	users   []tailnetUser
	devices []tailnetDevice
	policy  string // empty if policy.hujson is missing
	dns     tailnetDNS
	files   []string // names of the files that were found
}

type tailnetUser struct {
	LoginName   string `json:"loginName"`
	DisplayName string `json:"displayName"`
	Role        string `json:"role"`
	Status      string `json:"status"`
	Type        string `json:"type"`
}

type tailnetDevice struct {
	Name       string   `json:"name"` // with the domain of the tailnet
	Hostname   string   `json:"hostname"`
	User       string   `json:"user"` // login name
	Addresses  []string `json:"addresses"`
	Tags       []string `json:"tags"`
	IsExternal bool     `json:"isExternal"`
}

type tailnetDNS struct {
	nameservers, search []string
	split               map[string][]string
	magic               *bool
	found               bool
}

// readTailnet reads an export: the responses of Tailscale's API, one file each. Only the devices are required.
func readTailnet(dir string) (*tailnet, error) {
	var net tailnet
	var users struct{ Users []tailnetUser }
	var devices struct{ Devices []tailnetDevice }
	var servers struct{ DNS []string }
	var search struct{ SearchPaths []string }
	var preferences struct{ MagicDNS *bool }
	for _, f := range []struct {
		name string
		into any
	}{
		{"users.json", &users},
		{"devices.json", &devices},
		{"nameservers.json", &servers},
		{"searchpaths.json", &search},
		{"preferences.json", &preferences},
		{"split-dns.json", &net.dns.split},
	} {
		data, err := readExport(filepath.Join(dir, f.name))
		if errors.Is(err, fs.ErrNotExist) && f.name != "devices.json" {
			continue
		}
		if err == nil {
			err = json.Unmarshal(data, f.into)
		}
		if err != nil {
			return nil, fmt.Errorf("%s: %w; docs/moving-from-tailscale.md shows how to export it", filepath.Join(dir, f.name), err)
		}
		net.files = append(net.files, f.name)
	}
	policy, err := readExport(filepath.Join(dir, "policy.hujson"))
	if err == nil {
		net.files = append(net.files, "policy.hujson")
	} else if !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	net.users, net.devices, net.policy = users.Users, devices.Devices, string(policy)
	net.dns.nameservers, net.dns.search, net.dns.magic = servers.DNS, search.SearchPaths, preferences.MagicDNS
	net.dns.found = len(servers.DNS)+len(search.SearchPaths)+len(net.dns.split) > 0 || preferences.MagicDNS != nil
	return &net, nil
}

func readExport(path string) ([]byte, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	data, err := io.ReadAll(io.LimitReader(file, maxExport+1))
	if err == nil && len(data) > maxExport {
		err = fmt.Errorf("%s is larger than %d MB", path, maxExport>>20)
	}
	return data, err
}

// plannedUser is a user to create, and how Tailscale calls it.
type plannedUser struct {
	Name        string `json:"name"`
	Email       string `json:"email,omitempty"`
	DisplayName string `json:"displayName,omitempty"`
	login       string
}

// plannedDevice is a device whose name and addresses are to be reserved.
type plannedDevice struct {
	Name     string   `json:"name"`
	Hostname string   `json:"hostname"`
	User     string   `json:"user,omitempty"`
	Tags     []string `json:"tags,omitempty"`
	IPv4     string   `json:"ipv4,omitempty"`
	IPv6     string   `json:"ipv6,omitempty"`
	// Command is what to run on the device.
	Command string `json:"command"`
}

// tailnetPlan is what an import creates, and what it leaves out.
type tailnetPlan struct {
	Users   []plannedUser   `json:"users"`
	Devices []plannedDevice `json:"devices"`
	LeftOut []string        `json:"leftOut"`
	// Admins are the users with another role than member.
	Admins []string `json:"admins"`
}

// notInNames matches the characters that a user name cannot have.
var notInNames = regexp.MustCompile(`[^A-Za-z0-9._@-]+`)

// plan decides the names of users and the owners of devices.
func (net *tailnet) plan(server string) tailnetPlan {
	p := tailnetPlan{Users: []plannedUser{}, Devices: []plannedDevice{}, LeftOut: []string{}, Admins: []string{}}
	taken, names := map[string]bool{}, map[string]string{} // names by login
	add := func(u tailnetUser) {
		if u.LoginName == "" || names[u.LoginName] != "" {
			return
		}
		planned := u.planned(taken)
		taken[strings.ToLower(planned.Name)], names[u.LoginName] = true, planned.Name
		p.Users = append(p.Users, planned)
	}
	for _, u := range net.users {
		switch {
		case u.Type == "shared":
			p.LeftOut = append(p.LeftOut, fmt.Sprintf("user %s: belongs to another tailnet", u.LoginName))
		case u.Status == "suspended":
			p.LeftOut = append(p.LeftOut, fmt.Sprintf("user %s: suspended", u.LoginName))
		default:
			add(u)
			if name := names[u.LoginName]; u.Role != "" && u.Role != "member" {
				p.Admins = append(p.Admins, fmt.Sprintf("%s (%s)", name, u.Role))
			}
		}
	}
	for _, d := range net.devices {
		if d.IsExternal {
			p.LeftOut = append(p.LeftOut, fmt.Sprintf("device %s: shared by another tailnet", d.Name))
			continue
		}
		if len(d.Tags) == 0 && len(net.users) == 0 {
			add(tailnetUser{LoginName: d.User})
		}
		owner := names[d.User]
		if len(d.Tags) == 0 && owner == "" {
			p.LeftOut = append(p.LeftOut, fmt.Sprintf("device %s: its user %q is not imported", d.Name, d.User))
			continue
		}
		p.Devices = append(p.Devices, d.planned(owner, server))
	}
	return p
}

// planned returns the user to create. The name is the part of an email address before the @, if it is free: the
// policy can also use the address. Login names such as alice@github are not addresses, and stay as they are.
func (u tailnetUser) planned(taken map[string]bool) plannedUser {
	out := plannedUser{DisplayName: u.DisplayName, login: u.LoginName}
	local, domain, _ := strings.Cut(u.LoginName, "@")
	out.Name = strings.Trim(notInNames.ReplaceAllString(u.LoginName, "-"), "-")
	if strings.Contains(domain, ".") {
		out.Email = u.LoginName
		if short := strings.Trim(notInNames.ReplaceAllString(local, "-"), "-"); short != "" && !taken[strings.ToLower(short)] {
			out.Name = short
		}
	}
	return out
}

func (d tailnetDevice) planned(owner, server string) plannedDevice {
	name, _, _ := strings.Cut(d.Name, ".")
	out := plannedDevice{Name: strings.ToLower(cmp.Or(name, d.Hostname)), Hostname: cmp.Or(d.Hostname, name)}
	for _, a := range d.Addresses {
		if strings.Contains(a, ":") {
			out.IPv6 = a
		} else {
			out.IPv4 = a
		}
	}
	out.Command = "tailscale login --login-server " + server
	if len(d.Tags) == 0 {
		out.User = owner
		return out
	}
	out.Tags = slices.Sorted(slices.Values(d.Tags))
	out.Command += " --auth-key <key for " + strings.Join(out.Tags, ",") + ">"
	return out
}
