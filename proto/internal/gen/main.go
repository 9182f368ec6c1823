// Command gen makes the Go code of the contract from its .proto files.
//
// It is all Go: bufbuild/protocompile reads the files, and the generators of
// protobuf and gRPC run as this module's tools, so that regenerating needs no
// protoc. `go generate ./...` runs it in the folder of the files:
//
//	gen FILE.proto…
//
// Names are relative to the folder proto, which is the root of imports. What it
// writes is committed; running it again changes nothing.
package main

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/bufbuild/protocompile"
	"github.com/bufbuild/protocompile/protoutil"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/descriptorpb"
	"google.golang.org/protobuf/types/pluginpb"
)

// generators is the tools, by the last part of their names in go.mod.
var generators = []string{"protoc-gen-go", "protoc-gen-go-grpc"}

// parameter has the code written beside its source.
const parameter = "paths=source_relative"

func main() {
	code, err := generate(context.Background(), os.Args[1:])
	for name, text := range code {
		if err == nil {
			err = os.WriteFile(name, text, 0o644)
		}
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "gen:", err)
		os.Exit(1)
	}
}

// generate gives the code of files by the paths where it belongs: beside them.
func generate(ctx context.Context, files []string) (map[string][]byte, error) {
	root, err := protoRoot()
	if err != nil {
		return nil, err
	}
	request, err := compile(ctx, root, files)
	if err != nil {
		return nil, err
	}
	code := map[string][]byte{}
	for _, tool := range generators {
		answer, err := run(ctx, tool, request)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", tool, err)
		}
		for _, f := range answer.File {
			code[filepath.Join(root, filepath.FromSlash(f.GetName()))] = []byte(f.GetContent())
		}
	}
	return code, nil
}

// protoRoot is the folder called proto that the working directory is in.
func protoRoot() (string, error) {
	dir, err := os.Getwd()
	if err != nil {
		return "", err
	}
	for ; filepath.Base(dir) != "proto"; dir = filepath.Dir(dir) {
		if dir == filepath.Dir(dir) {
			return "", fmt.Errorf("not within a folder called proto")
		}
	}
	return dir, nil
}

// compile reads files and makes what a generator is asked.
func compile(ctx context.Context, root string, files []string) (*pluginpb.CodeGeneratorRequest, error) {
	compiler := protocompile.Compiler{
		Resolver:       protocompile.WithStandardImports(&protocompile.SourceResolver{ImportPaths: []string{root}}),
		SourceInfoMode: protocompile.SourceInfoStandard,
	}
	compiled, err := compiler.Compile(ctx, files...)
	if err != nil {
		return nil, err
	}
	request := &pluginpb.CodeGeneratorRequest{FileToGenerate: files, Parameter: proto.String(parameter)}
	seen := map[string]bool{}
	add := func(f *descriptorpb.FileDescriptorProto) {
		if !seen[f.GetName()] {
			seen[f.GetName()] = true
			request.ProtoFile = append(request.ProtoFile, f)
		}
	}
	for _, f := range compiled {
		imports := f.Imports()
		for i := range imports.Len() {
			add(protoutil.ProtoFromFileDescriptor(imports.Get(i)))
		}
		add(protoutil.ProtoFromFileDescriptor(f))
	}
	return request, nil
}

// run asks a generator, which speaks protobuf on its standard input and output.
func run(ctx context.Context, tool string, request *pluginpb.CodeGeneratorRequest) (*pluginpb.CodeGeneratorResponse, error) {
	in, err := proto.Marshal(request)
	if err != nil {
		return nil, err
	}
	cmd := exec.CommandContext(ctx, "go", "tool", tool)
	var complaints bytes.Buffer
	cmd.Stdin, cmd.Stderr = bytes.NewReader(in), &complaints
	out, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("%w: %s", err, strings.TrimSpace(complaints.String()))
	}
	answer := &pluginpb.CodeGeneratorResponse{}
	if err := proto.Unmarshal(out, answer); err != nil {
		return nil, err
	}
	if answer.Error != nil {
		return nil, fmt.Errorf("%s", answer.GetError())
	}
	return answer, nil
}
