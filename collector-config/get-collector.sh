#!/usr/bin/env bash
# Prints the path of a collector that runs the configurations in this folder; progress goes to stderr.
# Takes `otelcol-contrib` from PATH if it is recent enough, else builds the one in builder.yaml once
# (2-4 minutes on two cores) into ${XDG_CACHE_HOME:-$HOME/.cache}/otel-evals, keyed by the hash of builder.yaml.
# With --no-build it fails where a build would be needed.
set -euo pipefail

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
recipe=$here/builder.yaml
version=$(sed -n 's/^ *version: *//p' "$recipe" | head -n 1)
minimum=0.144.0 # the first release that knows the exporters as otlp_http and otlp_grpc
minimum_go=1.25 # asked for by the go.mod of the builder at $version

say() { echo "get-collector: $*" >&2; }

# at_least HAVE WANT: whether dotted version HAVE is WANT or newer.
at_least() { [ "$(printf '%s\n%s\n' "$2" "$1" | sort -V | head -n 1)" = "$2" ]; }

collector_on_path() {
  local path have
  path=$(command -v otelcol-contrib) || return 1
  have=$("$path" --version 2>/dev/null | sed -n 's/.* v\{0,1\}\([0-9][0-9.]*\).*/\1/p' | head -n 1)
  if [ -n "$have" ] && at_least "$have" "$minimum"; then
    say "using $path $have (found on PATH)"
    echo "$path"
  else
    say "$path is ${have:-of an unknown version}; at least $minimum is needed, so it is not used"
    return 1
  fi
}

recipe_hash() {
  if command -v sha256sum >/dev/null; then sha256sum <"$recipe"; else shasum -a 256 <"$recipe"; fi | cut -c 1-16
}

require_go() {
  local remedy="install Go $minimum_go or newer (https://go.dev/dl/), or otelcol-contrib $minimum or newer \
(https://github.com/open-telemetry/opentelemetry-collector-releases/releases), and put it on PATH"
  if ! command -v go >/dev/null; then
    say "no otelcol-contrib on PATH and no Go to build a collector with: $remedy"
    return 1
  fi
  local have toolchain
  have=$(go env GOVERSION | sed 's/^go//')
  toolchain=$(go env GOTOOLCHAIN)
  # From 1.21 on, go fetches a newer toolchain by itself unless it is told to stay local.
  if at_least "$have" "$minimum_go" || { at_least "$have" 1.21 && [ "$toolchain" != local ]; }; then return 0; fi
  say "Go $have is too old to build the collector: $remedy"
  return 1
}

# compile FOLDER LOG: leaves FOLDER/otelcol-evals/otelcol-evals.
compile() {
  cd "$1"
  export CGO_ENABLED=0
  say "building collector $version with $(go env GOVERSION), once; this takes a few minutes"
  if go run "go.opentelemetry.io/collector/cmd/builder@v$version" --config "$recipe" >"$2" 2>&1; then return 0; fi
  # The builder ends with `go mod tidy`, which also wants modules that only the components' tests use. Behind a
  # proxy that lacks one of them it fails although all the sources are there.
  say "the builder did not finish; compiling the sources it generated, without 'go mod tidy'"
  if cd otelcol-evals 2>/dev/null && [ -f main.go ] &&
    GOFLAGS="$(go env GOFLAGS) -mod=mod" go build -trimpath -ldflags='-s -w' -o otelcol-evals . >>"$2" 2>&1; then
    return 0
  fi
  tail -n 20 "$2" >&2
  say "the build failed, see above; are the Go module proxy and checksum database reachable (go env GOPROXY)?"
  return 1
}

build() {
  local cache=$1 target=$2 work
  # The folder is private to this process and the binary is moved into place whole: an interrupted build leaves
  # nothing that could be taken for a collector. The lock only saves concurrent callers the work.
  if command -v flock >/dev/null; then
    exec 9>"$cache/collector.lock"
    flock 9
    if [ -x "$target" ]; then return 0; fi
    rm -rf "$cache"/build.* # left by a build that was killed: none is running while we hold the lock
  fi
  work=$(mktemp -d "$cache/build.XXXXXX")
  # shellcheck disable=SC2064 # the folder of now, not of when the trap runs
  trap "rm -rf '$work'" EXIT
  (compile "$work" "$work/log")
  mv "$work/otelcol-evals/otelcol-evals" "$target"
  say "built $target"
}

main() {
  case ${1:-} in
    '' | --no-build) ;;
    *) say "unknown argument $1; the only one is --no-build" && return 2 ;;
  esac
  if collector_on_path; then return 0; fi
  local cache target
  cache=${XDG_CACHE_HOME:-$HOME/.cache}/otel-evals
  target=$cache/otelcol-evals-$version-$(recipe_hash)
  if [ ! -x "$target" ]; then
    if [ "${1:-}" = --no-build ]; then
      say "no otelcol-contrib on PATH and none built yet: run 'make components'"
      return 1
    fi
    require_go
    mkdir -p "$cache"
    build "$cache" "$target"
  fi
  echo "$target"
}

main "$@"
