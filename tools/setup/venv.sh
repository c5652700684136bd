# SPDX-License-Identifier: Apache-2.0
# Sourced by the set-up scripts: virtual environments of Debian's interpreter. Pods see the machine's
# /usr read-only and each environment at the same absolute path.
#
#   dir=$(cached NAME "$(venv_key PINS)" FUNCTION)
#   make_venv DIR NAME PINS [PIP_FLAG...]   for FUNCTION; reports downloads of 10 MB and more
. "$(dirname "${BASH_SOURCE[0]}")/cache.sh"

PYTHON=/usr/bin/python3
[ -x "$PYTHON" ] || die "$PYTHON is missing: run tools/setup/apt-packages"

venv_key() { key_of "$1" -- "$("$PYTHON" --version)"; }

make_venv() {
  local dir=$1 name=$2 pins=$3 line
  "$PYTHON" -m venv "$dir" || die "python3-venv is missing: run tools/setup/apt-packages"
  "$dir/bin/python" -m pip install --no-cache-dir --disable-pip-version-check --progress-bar off \
    "${@:4}" -r "$pins" | while IFS= read -r line; do
      case $line in *Downloading*\([0-9][0-9]*' MB)' | 'Installing '*) say "$name: ${line:0:90}" ;; esac
    done
}
