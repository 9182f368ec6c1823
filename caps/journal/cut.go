package journal

import (
	"bytes"
	"crypto/ed25519"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
)

// A Reference names a blob: {"bytes":N,"sha256":"HASH"}.
type Reference struct {
	Bytes  int64 `json:"bytes"`
	SHA256 Hash  `json:"sha256"`
}

// A Cut is what a checkpoint event says: what is no longer there. The event
// stands in the place of the last event that was dropped: it has that one's
// number, and its hash as Prev, which is also the Prev of the next event, so
// that the chain goes on.
type Cut struct {
	// To is the number of the last event dropped, and of the checkpoint.
	To uint64 `json:"to"`
	// Dropped is how many of the events up to To are gone.
	Dropped uint64 `json:"dropped"`
	// Hash is that of event To.
	Hash Hash `json:"hash"`
	// Kept names the events before To that are still there, by a blob with
	// number and hash of each, 40 bytes, in order; nil: none.
	Kept *Reference `json:"kept,omitempty"`
	// Snapshot is what [RetainOptions.Snapshot] gave, a blob; nil: nothing.
	Snapshot *Reference `json:"snapshot,omitempty"`
	// Previous is the hash of the checkpoint that this one replaced.
	Previous *Hash `json:"previous,omitempty"`
	// Store is the [Store.ID].
	Store string `json:"store"`
	// Key is the public key that the signature is by, in hexadecimal.
	Key string `json:"key"`
}

// signature is how the data of a checkpoint ends: with the signature of what is
// before, and of the event's number and time.
const signature = `,"signature":"`

// ReadCut reads the data of a checkpoint and checks that it is signed, by the
// key it names; whether that is the right key is for the caller to know.
func ReadCut(e *Event) (*Cut, error) {
	body, tail, ok := bytes.Cut(e.Data, []byte(signature))
	text, closed := bytes.CutSuffix(tail, []byte(`"}`))
	if e.Kind != Checkpoint || !ok || !closed {
		return nil, errors.New("it is not a signed checkpoint")
	}
	sig, err := hex.DecodeString(string(text))
	if err != nil {
		return nil, fmt.Errorf("its signature: %w", err)
	}
	c := new(Cut)
	dec := json.NewDecoder(bytes.NewReader(append(bytes.Clone(body), '}')))
	dec.DisallowUnknownFields()
	if err := dec.Decode(c); err != nil {
		return nil, fmt.Errorf("it is not a checkpoint of this format: %w", err)
	}
	key, err := hex.DecodeString(c.Key)
	if err != nil || len(key) != ed25519.PublicKeySize {
		return nil, errors.New("its key is invalid")
	}
	if !ed25519.Verify(key, toSign(e, body), sig) {
		return nil, errors.New("its signature is not by the key it names")
	}
	if c.To != e.Seq || c.Hash != e.Prev {
		return nil, errors.New("it stands in the place of another event than it says")
	}
	return c, nil
}

// sign gives e the data of a checkpoint.
func (c *Cut) sign(e *Event, key ed25519.PrivateKey) error {
	b, err := json.Marshal(c)
	if err != nil {
		return err
	}
	body := b[:len(b)-1]
	sig := ed25519.Sign(key, toSign(e, body))
	e.Data = fmt.Appendf(bytes.Clone(body), `%s%x"}`, signature, sig)
	return nil
}

func toSign(e *Event, body []byte) []byte {
	b := []byte("mcp-pif journal checkpoint 1\n")
	b = binary.BigEndian.AppendUint64(b, e.Seq)
	b = binary.BigEndian.AppendUint64(b, uint64(e.Time.UnixMicro()))
	return append(b, body...)
}

// keptSize is what one event takes in the list of those kept.
const keptSize = 8 + len(Hash{})

// appendKept adds an event to the list of those kept.
func appendKept(b []byte, e *Event) []byte {
	return append(binary.BigEndian.AppendUint64(b, e.Seq), e.Hash[:]...)
}
