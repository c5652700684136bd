# SPDX-License-Identifier: Apache-2.0
# Sourced by the set-up scripts: a cache of built artifacts, each named by a hash of its
# inputs.
#
#   dir=$(cached NAME KEY FUNCTION)   the artifact's directory; FUNCTION DIR fills it if missing
#   key_of FILE... [-- WORD...]       hex key of the files' contents and of the words
#
# An artifact is complete when DIR/.complete exists, which is written last: the next build removes
# an interrupted one. Builds of one name wait for each other (flock).
# $CACHE/NAME/current names the last requested one. Progress goes to stderr; stdout has only the
# directory.

set -a  # builds run in a separate bash, where errexit holds in any context of the caller
CACHE=${CACHEWARM_CACHE:-$HOME/.cache/cachewarm}
REPO=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)

say() { printf '%s\n' "setup: $*" >&2; }
die() { printf '%s\n' "setup: $*" >&2; exit 1; }

# Counts the lines of a long step and reports the count at most every 10 s. A line that does not
# match PATTERN is not counted but shown, because it may be an error.
counted() { # WHAT PATTERN [TOTAL]
  local what=$1 pattern=$2 total=${3:+ of $3} count=0 next=$((SECONDS + 10)) line
  while IFS= read -r line; do
    if [[ $line =~ $pattern ]]; then count=$((count + 1)); else printf '%s\n' "$line" >&2; fi
    ((SECONDS < next)) || { say "$what: $count$total"; next=$((SECONDS + 10)); }
  done
}

key_of() {
  local -a files=()
  while (($#)) && [ "$1" != -- ]; do files+=("$1"); shift; done
  { ((${#files[@]})) && cat "${files[@]}"; printf '%s\n' "$@"; } | sha256sum | cut -c1-16
}

cached() {
  local name=$1 key=$2 build=$3 dir=$CACHE/$1/$2 started=$SECONDS
  mkdir -p "$CACHE/$name"
  if [ ! -e "$dir/.complete" ]; then
    exec {lock}>"$CACHE/$name/.lock"
    flock "$lock"
    if [ ! -e "$dir/.complete" ]; then
      say "$name: building (once; kept in $dir)"
      rm -rf "$dir"
      mkdir -p "$dir"
      bash -euo pipefail -c '"$@"' "$build" "$build" "$dir" >&2 ||
        die "$name: failed; the lines above say why. Run it again after the cure."
      touch "$dir/.complete"
      say "$name: done in $((SECONDS - started)) s"
    fi
    exec {lock}>&-
  fi
  if [ "$(readlink "$CACHE/$name/current" 2>/dev/null)" != "$key" ]; then
    ln -sfn "$key" "$CACHE/$name/.current.$BASHPID"
    mv -fT "$CACHE/$name/.current.$BASHPID" "$CACHE/$name/current"
  fi
  printf '%s\n' "$dir"
}
