#!/usr/bin/env bash
# Builds the bundles of mcp-pif that MCP clients install (.mcpb): one for each system
# and architecture, each with a static binary, validated by Anthropic's mcpb.
#
#   cmd/mcpb/build.sh [OUT [OS/ARCH…]]
#
# OUT is dist where it is left out. VERSION in the environment is the version, 0.0.0
# where there is none. It needs Go, and npx for mcpb.
set -euo pipefail
cd "$(dirname "$0")/../.."
out=${1:-dist}
[ $# -eq 0 ] || shift
targets=("$@")
[ $# -gt 0 ] || targets=(linux/amd64 linux/arm64 darwin/amd64 darwin/arm64 windows/amd64 windows/arm64)
version=${VERSION:-0.0.0}
mcpb=(npx --yes @anthropic-ai/mcpb@2.1.2)
mkdir -p "$out"
out=$(cd "$out" && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
# mcpb writes the time of packing into the bundle; it gets the commit's, so that a second
# build is the same, byte for byte.
export SOURCE_DATE_EPOCH=${SOURCE_DATE_EPOCH:-$(git log -1 --format=%ct)}
cat >"$work/date.cjs" <<'END'
const now = Number(process.env.SOURCE_DATE_EPOCH) * 1000;
globalThis.Date = class extends Date { constructor(...given) { given.length ? super(...given) : super(now); } };
END

for target in "${targets[@]}"; do
	os=${target%/*} arch=${target#*/}
	entry=mcp-pif platform=$os sandbox=best-effort
	case $os in
	linux) sandbox=require ;;
	windows) entry=mcp-pif.exe platform=win32 ;;
	esac
	dir=$work/$os-$arch
	mkdir -p "$dir/server"
	CGO_ENABLED=0 GOOS=$os GOARCH=$arch go build -trimpath -ldflags "-s -w -X github.com/mcp-pif/mcp-pif/cmd/internal/cli.release=v$version" -o "$dir/server/$entry" ./cmd/mcp-pif
	sed -e "s/VERSION/$version/" -e "s/ENTRY/$entry/g" -e "s/SANDBOX/$sandbox/" -e "s/PLATFORM/$platform/" cmd/mcpb/manifest.json >"$dir/manifest.json"
	cp LICENSE "$dir/"
	"${mcpb[@]}" validate "$dir/manifest.json"
	TZ=UTC NODE_OPTIONS="--require=$work/date.cjs" "${mcpb[@]}" pack "$dir" "$out/mcp-pif-$version-$os-$arch.mcpb"
done
