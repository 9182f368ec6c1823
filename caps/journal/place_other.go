//go:build !unix

package journal

import "io/fs"

// This system's files have neither owners nor modes that Go could ask for: the
// place is as safe as the directory's access list makes it.

func notOurs(fs.FileInfo) string { return "" }

func othersCanChange(info fs.FileInfo) (why string, refuse bool) {
	if !info.IsDir() {
		return "is not a directory", true
	}
	return "", false
}

func exposed(fs.FileInfo) bool { return false }

// ended returns false: this system can't be asked.
func ended(int) bool { return false }
