#!/usr/bin/env bash
# Builds a release of the committed state without publishing it, twice, and compares:
# archives for six platforms, bundles for MCP clients, checksums, a bill of materials
# each, a Homebrew cask, and server.json, the entry of the registry of MCP servers.
#
#   cmd/mcpb/release.sh [OUT]
#
# OUT is dist by default. It needs Go, npx and git; it installs GoReleaser and
# cyclonedx-gomod into a folder of its own. A release itself is `goreleaser release -f cmd/mcpb/goreleaser.yaml` on
# a tagged commit; the container's image is made only there, since it needs Docker.
set -euo pipefail
cd "$(dirname "$0")/../.."
out=$(mkdir -p "${1:-dist}" && cd "${1:-dist}" && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
export PATH="$work/bin:$PATH"
GOBIN=$work/bin go install github.com/goreleaser/goreleaser/v2@v2.16.0
GOBIN=$work/bin go install github.com/CycloneDX/cyclonedx-gomod/cmd/cyclonedx-gomod@v1.10.0

git clone -q . "$work/tree"
git -C "$work/tree" remote set-url origin https://github.com/mcp-pif/mcp-pif.git
cd "$work/tree"
goreleaser check cmd/mcpb/goreleaser.yaml
for round in first second; do
	rm -rf bundles
	goreleaser release -f cmd/mcpb/goreleaser.yaml --snapshot --clean --skip=docker
	cp -r dist "$work/$round"
done
diff "$work/first/SHA256SUMS" "$work/second/SHA256SUMS"
echo "both builds have the same hashes"

cd "$work/second"
version=$(sed -n 's/.*"version":"\([^"]*\)".*/\1/p' metadata.json)
{
	printf '{"$schema":"https://static.modelcontextprotocol.io/schemas/2025-12-11/server.schema.json","name":"io.github.mcp-pif/mcp-pif","title":"PIF",'
	printf '"description":"Models make their own tools in a small pure language and act only on what you grant.",'
	printf '"repository":{"url":"https://github.com/mcp-pif/mcp-pif","source":"github"},"version":"%s","packages":[' "$version"
	separator=
	grep '\.mcpb$' SHA256SUMS | while read -r hash file; do
		printf '%s{"registryType":"mcpb","identifier":"https://github.com/mcp-pif/mcp-pif/releases/download/v%s/%s","fileSha256":"%s","transport":{"type":"stdio"}}' \
			"$separator" "$version" "$file" "$hash"
		separator=,
	done
	printf ']}\n'
} >server.json
cp -r ./*.tar.gz ./*.zip ./*.cdx.json SHA256SUMS server.json homebrew ../tree/bundles/*.mcpb "$out"
ls -l "$out"
