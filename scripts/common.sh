# SPDX-License-Identifier: GPL-2.0-or-later
# shellcheck shell=bash disable=SC2034
# Sourced by the scripts of the set-up: paths, messages, and apt with a configuration of our own.
set -euo pipefail
umask 022

top=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd -P)
build=$top/build
src=$build/src
apt=$build/apt
# What is built for the guests' kernel: make KERNEL=... gives another than Debian's, which has a folder of its own.
of_kernel=${GUEST_KERNEL:-$build}
jobs=$(nproc)
export LC_ALL=C
# A Python of the user's own (pyenv, conda) must not come before the one that Debian's meson is installed for.
export PATH=/usr/local/sbin:/usr/sbin:/usr/bin:/sbin:/bin
unset PYTHONPATH PYTHONHOME VIRTUAL_ENV

die() {
    printf 'rdma-hca: %s\n' "$*" >&2
    exit 1
}

as_root() {
    if [ "$(id -u)" = 0 ]; then "$@"; else sudo "$@"; fi
}

# need_space MIB: stop unless the file system of build/ has that much room.
need_space() {
    local free
    free=$(df -Pm "$build" | awk 'NR == 2 { print $4 }')
    [ "$free" -ge "$1" ] ||
        die "not enough disk space: $1 MiB are needed and $build has $free MiB; free some, or clone to another disk"
}

# private_apt ARGS...: apt-get that reads and writes build/apt only (but for packages it is told to install).
private_apt() {
    APT_CONFIG=$apt/apt.conf DEBIAN_FRONTEND=noninteractive apt-get -q "$@"
}

# apt_fetch ARGS...: private_apt that downloads. Lists from another day may name files that the mirror has replaced.
apt_fetch() {
    private_apt "$@" || { private_apt update && private_apt "$@"; }
}

# versions_of NAME: those that there are to choose from, the newest last.
versions_of() {
    awk -v name="$1" '$1 == name { print $2 }' "$top/scripts/versions"
}

# suites_of NAME VERSION: the suites that may have it.
suites_of() {
    awk -v name="$1" -v version="$2" '$1 == name && $2 == version { for (i = 3; i <= NF; i++) print $i }' "$top/scripts/versions"
}
