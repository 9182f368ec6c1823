package node

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/mcp-pif/mcp-pif/caps/statefile"
)

// Nodes that were given other plugins or flow rules than the cluster's don't act. The
// cluster's are a document of its authority: those of its first node, until no node has
// them any more that others hear of. So a change holds at once everywhere, when the last
// node goes that was given what was before.

// ruled is the name of that document.
const ruled = "given"

// alike is what nodes must be given alike.
var alike = []string{"flow rules", "plugins"}

// rulesOf is that part of what a node was given, as the document has it.
func rulesOf(given map[string]string) []byte {
	part := map[string]string{}
	for _, what := range alike {
		part[what] = given[what]
	}
	text, _ := json.Marshal(part) // a map of texts
	return text
}

// Unlike returns what this node was given otherwise than the cluster's, so that it doesn't act.
func (n *Node) Unlike() (list []string) {
	var cluster map[string]string
	n.mu.Lock()
	d := n.docs[ruled]
	n.mu.Unlock()
	if n.o.Given == nil || json.Unmarshal(d.Content, &cluster) != nil {
		return nil
	}
	for _, what := range alike {
		if cluster[what] != n.o.Given[what] {
			list = append(list, what)
		}
	}
	return list
}

// errUnlike is what a model may see of it.
func errUnlike(list []string) error {
	return fmt.Errorf("this node of the cluster has other %s than the cluster, and performs no effects; the operator can see more with 'mcp-pif cluster status' on its machine", strings.Join(list, " and "))
}

// agree has what this node was given be the cluster's where no other node has what is.
func (n *Node) agree() error {
	docs, at, err := n.documents()
	d, known := docs[ruled]
	if mine := rulesOf(n.o.Given); err == nil && n.o.Given != nil && (!known || !bytes.Equal(d.Content, mine) && len(n.held(docs, d.Content)) == 0) {
		err = n.write(ruled, d.Version+1, at[ruled], mine)
	}
	if errors.Is(err, statefile.ErrMoved) {
		return nil // another node was first
	}
	return err
}

// held returns the other nodes that may have what the cluster's are.
func (n *Node) held(docs map[string]document, rules []byte) (names []string) {
	for name, r := range n.members(docs) {
		if name != n.o.Name && !n.o.Own && !r.Left && n.Alive(name) && (r.Given == nil || bytes.Equal(rulesOf(r.Given), rules)) {
			names = append(names, name)
		}
	}
	return names
}

// Before is how many nodes that may act have a name before this one's.
func (n *Node) Before() int {
	docs, _, _ := n.documents()
	return len(slices.DeleteFunc(n.held(docs, docs[ruled].Content), func(name string) bool { return name > n.o.Name }))
}

// tellRules tells the operator where it changes whether this node may act by its rules.
func (n *Node) tellRules(told string) string {
	switch now := strings.Join(n.Unlike(), ", "); {
	case now == told:
	case now == "":
		n.o.Log.Info("this node has what the cluster has again, and acts")
	default:
		n.o.Log.Error("this node has something else than the cluster, and performs no effects: give all nodes the same", "unlike", now)
	}
	return strings.Join(n.Unlike(), ", ")
}
