#!/usr/bin/env bash
# Makes build/ns/homeport/<package>, links to the five code folders, so that pytest, mypy and
# import-linter see the working tree under its import names. Ignored by git; safe to repeat.
set -euo pipefail
root="$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)"
mkdir -p "$root/build/ns/homeport"
for package in appmaster config container job_coordinator local_cluster; do
  link="$root/build/ns/homeport/$package"
  if [[ "$(readlink "$link" || true)" != "../../../$package" ]]; then
    ln -sfn "../../../$package" "$link"
  fi
done
