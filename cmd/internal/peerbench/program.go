package main

import (
	"embed"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// programFiles is where the programs are, seen from this folder: core's own
// benchmarks run the same ones.
var programFiles = os.DirFS("../../../core/testdata/bench")

//go:embed peers/*
var peerFiles embed.FS

// program is one file of core/testdata/bench: PIF code that is evolved as a tool called
// ID, run with Input, and must give the integer Expect. Loops are JSON; programs that do
// what people write are text, with what they do in the first line, and input => result
// in the second.
type program struct {
	ID     string          `json:"id"`
	Doc    string          `json:"doc"`
	Code   json.RawMessage `json:"code"`
	Input  json.RawMessage `json:"input"`
	Expect int64           `json:"expect"`

	real bool
}

// realHead is the first two lines of a program in the text form.
var realHead = regexp.MustCompile(`^// (.*)\n// ([0-9]+) => ([0-9]+)\n`)

// loadPrograms reads the programs in the order of their names, the loops first.
func loadPrograms() ([]*program, error) {
	names, err := fs.Glob(programFiles, "*.*")
	if err == nil && len(names) == 0 {
		err = errors.New("no programs in ../../../core/testdata/bench: run this from its own folder")
	}
	if err != nil {
		return nil, err
	}
	var ps []*program
	for _, name := range names {
		src, err := fs.ReadFile(programFiles, name)
		if err != nil {
			return nil, err
		}
		p := new(program)
		if path.Ext(name) == ".pif" {
			head := realHead.FindSubmatch(src)
			if head == nil {
				return nil, fmt.Errorf("%s: the first two lines aren't what it does and input => result", name)
			}
			*p = program{ID: strings.TrimSuffix(name, ".pif"), Doc: string(head[1]), Code: src, Input: head[2], real: true}
			p.Expect, err = strconv.ParseInt(string(head[3]), 10, 64)
		} else {
			err = json.Unmarshal(src, p)
		}
		if err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		if want := strings.TrimSuffix(path.Base(name), path.Ext(name)); p.ID != want {
			return nil, fmt.Errorf("%s: id is %q", name, p.ID)
		}
		ps = append(ps, p)
	}
	slices.SortStableFunc(ps, func(a, b *program) int { return rank(a) - rank(b) })
	return ps, nil
}

// rank puts the loops before the others.
func rank(p *program) int {
	if p.real {
		return 1
	}
	return 0
}

// args returns the input as the arguments of the peers' functions: an integer
// is one argument, and a pair, which in PIF packs two parameters, is two.
func (p *program) args() ([]int64, error) {
	var n int64
	if json.Unmarshal(p.Input, &n) == nil {
		return []int64{n}, nil
	}
	var in struct {
		Pair []int64 `json:"pair"`
	}
	if err := json.Unmarshal(p.Input, &in); err != nil || len(in.Pair) != 2 {
		return nil, fmt.Errorf("%s: the input is neither an integer nor a pair of integers", p.ID)
	}
	return in.Pair, nil
}

// source returns the program as the peer with the given file extension writes it.
func (p *program) source(ext string) (string, error) {
	src, err := peerFiles.ReadFile("peers/" + p.ID + "." + ext)
	return string(src), err
}
