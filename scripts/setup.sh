#!/usr/bin/env bash
# Finds (or, as root on Debian, installs) Python 3.11 with venv and hands over to setup_main.py.
# See --help. "--print-python" prints the interpreter found and does nothing else.
set -euo pipefail
here="$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)"

usable() { # the pinned versions were resolved for 3.11; ensurepip is what a bare Debian lacks
  "$1" -I -c 'import ensurepip, sys, venv; sys.exit(sys.version_info[:2] != (3, 11))' 2>/dev/null
}

find_python() {
  local candidate
  for candidate in ${HOMEPORT_PYTHON:+"$HOMEPORT_PYTHON"} python3.11 python3 \
    /usr/bin/python3.11 /usr/local/bin/python3.11; do
    if usable "$candidate"; then
      command -v "$candidate"
      return 0
    fi
  done
  return 1
}

install_python() { # only without asking where that is customary: as root, with a package for it
  [[ $EUID -eq 0 ]] && command -v apt-get >/dev/null || return 1
  echo "  Python 3.11 with venv by apt-get (once) ..." >&2
  export DEBIAN_FRONTEND=noninteractive
  apt-get update -q >&2 && apt-get install -q -y --no-install-recommends python3.11-venv >&2
}

if ! python="$(find_python)"; then
  install_python || true
  if ! python="$(find_python)"; then
    echo "error: Python 3.11 with the modules venv and ensurepip was not found. Install, on" \
      "Debian 12: sudo apt-get install python3.11-venv; elsewhere any Python 3.11, and name it" \
      "in HOMEPORT_PYTHON if it is not on PATH" >&2
    exit 1
  fi
fi
if [[ "${1:-}" == "--print-python" ]]; then
  echo "$python"
  exit 0
fi
exec "$python" "$here/setup_main.py" "$@"
