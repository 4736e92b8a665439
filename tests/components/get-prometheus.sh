#!/usr/bin/env bash
# Prints the folder that holds `prometheus` and `promtool`; progress goes to stderr.
# Takes those on PATH, else unpacks Debian's package into the cache. It is not installed: that would start a service
# on port 9090 and need root.
set -euo pipefail

say() { echo "get-prometheus: $*" >&2; }

fetch() {
  local cache=$1 target=$2 work
  work=$(mktemp -d "$cache/prometheus.XXXXXX")
  # shellcheck disable=SC2064 # the folder of now, not of when the trap runs
  trap "rm -rf '$work'" EXIT
  (
    cd "$work"
    if ! apt-get -qq download prometheus >&2; then
      if [ "$(id -u)" != 0 ]; then return 1; fi
      apt-get -qq update >&2
      apt-get -qq download prometheus >&2
    fi
    dpkg-deb --extract prometheus_*.deb unpacked
  )
  # Another caller may have been faster; its files are the same.
  mv -T "$work/unpacked/usr/bin" "$target" 2>/dev/null || [ -x "$target/promtool" ]
  say "unpacked Debian's prometheus into $target"
}

main() {
  local path cache target
  if command -v promtool >/dev/null && path=$(command -v prometheus); then
    dirname "$path"
    return 0
  fi
  cache=${XDG_CACHE_HOME:-$HOME/.cache}/otel-evals
  target=$cache/prometheus
  if [ ! -x "$target/promtool" ]; then
    if [ "${1:-}" = --no-fetch ]; then
      say "no prometheus and promtool on PATH and none fetched yet: run 'make components'"
      return 1
    fi
    if ! command -v apt-get >/dev/null || ! command -v dpkg-deb >/dev/null; then
      say "no prometheus and promtool on PATH: install them from https://prometheus.io/download/"
      return 1
    fi
    mkdir -p "$cache"
    fetch "$cache" "$target"
  fi
  echo "$target"
}

main "$@"
