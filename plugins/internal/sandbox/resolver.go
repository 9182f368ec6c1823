package sandbox

import (
	"path/filepath"
	"strings"
)

// resolverFiles is what resolving names reads.
var resolverFiles = []string{
	"/etc/resolv.conf", "/etc/hosts", "/etc/nsswitch.conf", "/etc/host.conf", "/etc/gai.conf", "/etc/services", "/etc/protocols",
}

// resolverFolders are those where services put the target of /etc/resolv.conf.
// They replace the file when the network changes, so the folder is what is read.
var resolverFolders = []string{"/run/systemd/resolve", "/run/NetworkManager", "/run/resolvconf", "/run/connman"}

// certificateFiles is where systems keep the certificates of authorities: files,
// and folders with nothing else in them. What links point to is among them.
var certificateFiles = []string{
	"/etc/ssl/certs", "/etc/ssl/cert.pem", "/etc/ssl/ca-bundle.pem", "/etc/pki/tls/certs", "/etc/pki/tls/cert.pem",
	"/etc/pki/tls/cacert.pem", "/etc/pki/ca-trust/extracted", "/etc/ca-certificates/extracted", "/etc/certs",
	"/usr/share/ca-certificates", "/usr/local/share/ca-certificates", "/usr/share/pki/ca-trust-source",
	"/var/lib/ca-certificates", "/system/etc/security/cacerts",
}

// Resolver gives the rules of a plugin that speaks to servers by name and TLS:
// the system's resolver configuration and its certificate authorities, to be
// read. A spec with them has Network [Outgoing], or the rules are of no use.
// None of them is a folder that holds anything secret.
func Resolver() []Rule {
	var rules []Rule
	for _, name := range append(append([]string{}, resolverFiles...), certificateFiles...) {
		rules = append(rules, Rule{Path: name, Access: Read, Optional: true})
	}
	if target, err := filepath.EvalSymlinks("/etc/resolv.conf"); err == nil {
		for _, dir := range resolverFolders {
			if strings.HasPrefix(target, dir+"/") {
				rules = append(rules, Rule{Path: dir, Access: Read, Optional: true})
			}
		}
	}
	return rules
}
