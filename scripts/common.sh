# SPDX-License-Identifier: GPL-2.0-or-later
# shellcheck shell=bash disable=SC2034
# Sourced by the scripts of the set-up: paths, messages, and apt with a configuration of our own.
set -euo pipefail
umask 022

top=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd -P)
build=$top/build
apt=$build/apt
# What is built of QEMU, of the guests' kernel, of rdma-core. Another version than the usual one
# has a folder of its own: make gives it.
of_qemu=${HOST_QEMU:-$build}
# Guests of another architecture than the host's (GUEST_ARCH, a name of Debian's) have all of theirs in one.
arch=${GUEST_ARCH:-amd64}
case $arch in
amd64) of_arch=$build triplet=x86_64-linux-gnu cross='' machine=x86_64 ;;
arm64) of_arch=$build/arm64 triplet=aarch64-linux-gnu cross=aarch64-linux-gnu- machine=aarch64 ;;
*) echo "rdma-hca: there are no guests of GUEST_ARCH=$arch" >&2 && exit 1 ;;
esac
[ "$arch" = amd64 ] || of_qemu=$of_arch
of_kernel=${GUEST_KERNEL:-$of_arch}
of_rdma_core=${GUEST_RDMA_CORE:-$of_arch}
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

# foreign: the array none_installed is then for apt's programs to see packages of the guests' architecture, where it is another one.
foreign() {
    [ "$arch" != amd64 ] || return 0
    lists "$of_arch/apt" bookworm
    none_installed=("${options[@]}")
}

# lists FOLDER SUITE [TYPE]: read the lists of a suite of Debian's, of packages (deb) or of sources (deb-src), into the folder;
# the array options is then for apt's programs to use no others.
lists() {
    local folder=$1 suite=$2 type=${3:-deb} suites
    # A suite of backports stands on the suite itself.
    suites=$(printf '%s\n' "${suite%-backports}" "$suite" | uniq | xargs)
    rm -rf "$folder"
    mkdir -p "$folder/parts" "$folder/lists/partial" "$apt/none"
    : >"$apt/none/status"
    printf 'Types: %s\nURIs: %s\nSuites: %s\nComponents: main\nSigned-By: /usr/share/keyrings/debian-archive-keyring.gpg\n' \
        "$type" "$(sed -n 's/^URIs: //p' "$apt/parts/debian.sources" | head -n 1)" "$suites" >"$folder/parts/debian.sources"
    options=(-o "APT::Architecture=$arch" -o "APT::Architectures=$arch" -o "APT::Default-Release=$suite"
        -o "Dir::Etc::SourceParts=$folder/parts" -o "Dir::State::Lists=$folder/lists"
        -o "Dir::State::status=$apt/none/status" -o pkgCacheFile= -o "Dir::Cache=$folder")
    private_apt "${options[@]}" update || die "cannot fetch the lists of $suite: check the network, then run make again"
}

# series VERSION...: the first two numbers of each, once.
series() {
    printf '%s\n' "$@" | sed 's/^[0-9]*://; s/^\([0-9]*\.[0-9]*\).*/\1/' | sort -uV | xargs
}

# versions_of NAME: those that there are to choose from, the newest last.
versions_of() {
    awk -v name="$1" '$1 == name { print $2 }' "$top/scripts/versions"
}

# suites_of NAME VERSION: the suites that may have it.
suites_of() {
    awk -v name="$1" -v version="$2" '$1 == name && $2 == version { for (i = 3; i <= NF; i++) print $i }' "$top/scripts/versions"
}

# apply_patches NAME VERSION TREE: what we change in somebody's source tree: of all versions, then of this one.
apply_patches() {
    local patch patches
    mapfile -t patches < <(patches_of "$1" "$2")
    for patch in "${patches[@]}"; do
        patch -d "$3" -p1 --no-backup-if-mismatch <"$patch" || die "$patch does not apply to $1 $2"
    done
}

# patches_of NAME VERSION: their files, in order.
patches_of() {
    find "$top/patches/$1" "$top/patches/$1/$2" -maxdepth 1 -name '*.patch' 2>/dev/null | sort -u
}
