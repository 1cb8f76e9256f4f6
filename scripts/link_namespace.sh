#!/usr/bin/env bash
# Makes build/ns/homeport/<package>, links to the code folders, so that pytest, mypy and
# import-linter see the working tree under its import names. Ignored by git; safe to repeat.
set -euo pipefail
root="$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)"
mkdir -p "$root/build/ns/homeport"
for folder in appmaster config container job_coordinator local_cluster homeport/cli homeport/job homeport/testing; do
  link="$root/build/ns/homeport/${folder#homeport/}"
  if [[ "$(readlink "$link" || true)" != "../../../$folder" ]]; then
    ln -sfn "../../../$folder" "$link"
  fi
done
mkdir -p "$root/build/ns/homeport/examples"
ln -sfn ../../../../examples/flights "$root/build/ns/homeport/examples/flights"
ln -sfn ../../../../docker/observability "$root/build/ns/homeport/examples/observability"
ln -sfn ../../../docs "$root/build/ns/homeport/docs"
for file in __init__.py windows.py; do
  ln -sfn "../../../homeport/public/$file" "$root/build/ns/homeport/$file"
done
