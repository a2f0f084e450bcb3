# SPDX-License-Identifier: GPL-2.0-or-later
# shellcheck shell=bash disable=SC2154
# Sourced after common.sh by the scripts that make file systems for guests.

# With an empty record of installed packages apt names everything that is needed, whatever the host has.
none_installed=(-o "Dir::State::status=$apt/none/status")

# listed FILE: what a list has, a line each, without its comments
listed() { sed 's/#.*//; /^ *$/d' "$1"; }

# fetch_all_debs OUT PACKAGE...: fetch packages and what they need, but for what lies there already.
fetch_all_debs() {
    local out=$1
    shift
    mkdir -p "$out/partial"
    : >"$apt/none/status"
    apt_fetch install -y --no-install-recommends --download-only -o Debug::NoLocking=1 \
        "${none_installed[@]}" -o Dir::Cache::Archives="$out" "$@"
}

# fetch_debs OUT PACKAGE...: the same without what the guest image has, and the guests' rdma-core, which is ours.
fetch_debs() {
    local out=$1 deb package
    shift
    mkdir -p "$out"
    # apt does not fetch again what lies there already: the packages of the guest image.
    for deb in "$build"/guest/debs/*.deb; do
        ln "$deb" "$out/"
    done
    fetch_all_debs "$out" "$@" || return
    rm -f "$out"/{rdma-core,infiniband-diags,libibmad5,libibnetdisc5}_*.deb
    # By name, not by version: a second C library would not go with the guest image's.
    for deb in "$build"/guest/debs/*.deb; do
        package=${deb##*/}
        rm -f "$out/${package%%_*}"_*.deb
    done
}

# is_rdma_core FILE: whether a package is of those that guests do not have of Debian's, as our rdma-core is in their place
is_rdma_core() {
    case $1 in
    libibverbs1_* | librdmacm1_* | libibumad3_* | ibverbs-providers_*) return 0 ;;
    *) return 1 ;;
    esac
}

# unpack_debs ROOT DEB...: unpack packages in ROOT. Some still have folders /lib and /bin; a guest has all of them in /usr.
unpack_debs() {
    local root=$1 deb folder
    shift
    mkdir -p "$root/usr"
    for deb; do
        dpkg-deb -x "$deb" "$root"
    done
    for folder in bin sbin lib lib64; do
        if [ -d "$root/$folder" ] && [ ! -L "$root/$folder" ]; then
            mkdir -p "$root/usr/$folder"
            cp -a "$root/$folder/." "$root/usr/$folder/"
            rm -rf "${root:?}/$folder"
        fi
    done
}

# take_alternatives ROOT DEB...: the links that the packages would make with update-alternatives when they are installed.
take_alternatives() {
    local root=$1 deb link path
    shift
    for deb; do
        dpkg-deb --ctrl-tarfile "$deb" | tar -xO ./postinst 2>/dev/null | sed -e ':join' -e '/\\$/N; s/\\\n//; tjoin' |
            grep -oE -- '--(install|slave)[[:space:]]+/[^[:space:]$]+[[:space:]]+[^[:space:]]+[[:space:]]+/[^[:space:]$]+' || true
    done | while read -r _ link _ path; do
        [ -e "$root$path" ] || continue
        mkdir -p "$root${link%/*}"
        ln -sfn "$path" "$root$link"
    done
}

# leave_out_documents ROOT: what nobody reads in a guest
leave_out_documents() {
    rm -rf "$1"/usr/share/{doc,man,locale} "$1/var/lib"
}

# squash ROOT FILE: a file system of it. Not compressed: the guests' emulated CPUs would unpack it.
squash() {
    mksquashfs "$1" "$2.new" -noappend -all-root -noI -noD -noF -noX -no-progress -quiet
    mv "$2.new" "$2"
}
