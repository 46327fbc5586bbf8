# SPDX-License-Identifier: Apache-2.0
# Shared by the scripts; sourced, never run. Defines the repository's root and small helpers.

REPOSITORY="$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd -P)"
BUILD_DIRECTORY="$REPOSITORY/build"

die() {
  printf '%s: %s\n' "$(basename "$0")" "$1" >&2
  exit "${2:-1}"
}

say() {
  printf '== %s\n' "$1" >&2
}

# python_with MODULE...: prints the first interpreter that has all modules. The system's own comes
# first: that is where the distribution's packages land, whatever else stands first in PATH.
python_with() {
  local candidate code="import sys"
  for candidate in "$@"; do code="$code, $candidate"; done
  code="$code; sys.exit(sys.version_info < (3, 9))"
  for candidate in "${RNICSIM_PYTHON:-}" /usr/bin/python3 python3 python; do
    [ -n "$candidate" ] && command -v "$candidate" >/dev/null 2>&1 || continue
    if "$candidate" -c "$code" >/dev/null 2>&1; then
      printf '%s\n' "$candidate"
      return 0
    fi
  done
  return 1
}

# exec_tool TOOL "MODULE..." ARGUMENT...: runs lib/rnictools/TOOL.py with a fitting interpreter.
exec_tool() {
  local tool="$1" modules="$2" python
  shift 2
  # Modules are separate words on purpose.
  # shellcheck disable=SC2086
  python="$(python_with $modules)" ||
    die "no Python 3.9 or newer with these modules: ${modules:-(none)}; run scripts/setup" 2
  exec "$python" "$REPOSITORY/scripts/lib/entry.py" "$tool" "$@"
}
