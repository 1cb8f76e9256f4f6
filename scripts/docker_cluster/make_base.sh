#!/bin/bash
# Makes a tar of a small Debian 12: make_base.sh TARGET. Packages come from the machine's own mirror.
set -euo pipefail
root="$(mktemp -d)"
trap 'rm -rf "$root"' EXIT
mirror="$(awk '/^deb /{for (i = 2; i <= NF; i++) if ($i ~ /^http/) {print $i; exit}}' \
  /etc/apt/sources.list /etc/apt/sources.list.d/*.list 2> /dev/null || true)"
[ -n "$mirror" ] || mirror="$(awk '/^URIs:/{print $2; exit}' /etc/apt/sources.list.d/*.sources)"
debootstrap --variant=minbase --include=ca-certificates bookworm "$root" "$mirror"
rm -rf "$root"/var/cache/apt/archives/*.deb "$root"/var/lib/apt/lists/* "$root"/usr/share/doc/* \
  "$root"/usr/share/man/* "$root"/usr/share/locale/*
printf 'path-exclude /usr/share/%s/*\n' doc man locale > "$root/etc/dpkg/dpkg.cfg.d/docker-slim"
printf 'APT::Install-Recommends "false";\nAcquire::Languages "none";\n' \
  > "$root/etc/apt/apt.conf.d/90slim"
tar -C "$root" --numeric-owner -cf "$1" .
