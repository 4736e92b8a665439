#!/usr/bin/env bash
# Prints the path of a Jaeger 2; progress goes to stderr.
# Takes `jaeger` from PATH, else builds it once with Go into the cache (3-4 minutes on two cores).
set -euo pipefail

version=v1.76.0 # Jaeger 2 is in cmd/jaeger; its 2.x tags cannot be fetched as a Go module
module=github.com/jaegertracing/jaeger/cmd/jaeger

say() { echo "get-jaeger: $*" >&2; }

build() {
  local cache=$1 target=$2 work
  work=$(mktemp -d "$cache/jaeger.XXXXXX")
  # shellcheck disable=SC2064 # the folder of now, not of when the trap runs
  trap "rm -rf '$work'" EXIT
  say "building Jaeger $version, once; this takes a few minutes"
  (
    cd "$work"
    export CGO_ENABLED=0
    GOFLAGS="$(go env GOFLAGS) -mod=mod"
    export GOFLAGS
    # A module of our own that names Jaeger as a tool: `go install` would refuse its replace directives.
    go mod init throwaway && go get -tool "$module@$version" &&
      go build -trimpath -ldflags='-s -w' -o jaeger "$module"
  ) >"$work/log" 2>&1 || { tail -n 20 "$work/log" >&2 && return 1; }
  mv "$work/jaeger" "$target"
  say "built $target"
}

main() {
  local cache target
  if command -v jaeger; then return 0; fi
  cache=${XDG_CACHE_HOME:-$HOME/.cache}/otel-evals
  target=$cache/jaeger-$version
  if [ ! -x "$target" ]; then
    if [ "${1:-}" = --no-build ]; then
      say "no jaeger on PATH and none built yet: run 'make jaeger'"
      return 1
    fi
    if ! command -v go >/dev/null; then
      say "no jaeger on PATH and no Go to build it with: install either (https://www.jaegertracing.io/download/)"
      return 1
    fi
    mkdir -p "$cache"
    build "$cache" "$target"
  fi
  echo "$target"
}

main "$@"
