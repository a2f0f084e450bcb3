# SPDX-License-Identifier: GPL-2.0-or-later
# shellcheck shell=bash disable=SC2154
# Sourced after common.sh by the scripts that build modules, or set up a kernel for the guests.
#
# A kernel's folder (build/guest for Debian's, else $of_kernel/guest) has
#   kernel-version                 its release
#   vmlinux                        what QEMU boots
#   headers                        a link to its build tree
#   kernel/lib/modules/RELEASE     its modules

kbuild_options=()
[ "$arch" = amd64 ] || kbuild_options=("ARCH=$arch" "CROSS_COMPILE=$cross")

# build_module SOURCES OUT HEADERS ARGUMENT...: build a module in OUT, from links to its sources, as kbuild writes beside
# what it compiles. ARGUMENT: more of make's, and a goal.
build_module() {
    local source=$1 out=$2 headers=$3
    shift 3
    mkdir -p "$out"
    # The links follow the sources that are there now.
    find "$out" -type l -delete
    (cd "$source" && find . -type d) | while read -r dir; do mkdir -p "$out/$dir"; done
    (cd "$source" && find . -type f) | while read -r file; do ln -s "$source/$file" "$out/$file"; done

    # BTF takes a program of its own to make, and serves no guest.
    make -C "$headers" M="$out" "${kbuild_options[@]}" RDMA_HCA_ABI="$top/hw-rdma-hca/abi" CONFIG_DEBUG_INFO_BTF_MODULES= -j "$jobs" "$@"
}

# pvh_entry FILE HEADERS: whether QEMU can boot it as an ELF kernel: by its PVH entry, of which a note of Xen's tells (of type 18). What runs
# there before KASAN is set up would not get far.
pvh_entry() {
    ! grep -qs '^CONFIG_KASAN=y' "$2/.config" && readelf -nW "$1" 2>/dev/null | grep -q 'Xen.*0x00000012'
}

# bootable IMAGE OUT HEADERS: the file that QEMU boots for a vmlinux or bzImage. A vmlinux need not be unpacked by the guest's
# emulated CPU.
bootable() {
    rm -f "$2"
    if cmp -s -n 4 "$1" <(printf '\x7fELF'); then
        pvh_entry "$1" "$3" || die "QEMU cannot start $1 (no CONFIG_PVH, or with CONFIG_KASAN): give the bzImage"
        objcopy --strip-debug "$1" "$2"
    elif ! "$top/scripts/extract-vmlinux" "$1" "$2" || ! pvh_entry "$2" "$3"; then
        cp "$1" "$2"
    fi
}

# kernel_release [OPTION...]: the release of the kernel that linux-image-ARCH stands for. OPTION: of apt-cache.
kernel_release() {
    APT_CONFIG=$apt/apt.conf apt-cache "$@" --no-all-versions show "linux-image-$arch" |
        sed -n 's/^Depends: linux-image-\([^ ,]*\).*/\1/p'
}

# kernel_releases [OPTION...]: the releases that there are headers of, the newest last. OPTION: of apt-cache.
kernel_releases() {
    APT_CONFIG=$apt/apt.conf apt-cache "$@" pkgnames linux-headers- | sed -n 's/^linux-headers-\([0-9][^-]*\(-[0-9]*\)\?-amd64\)$/\1/p' | sort -V
}

# kernel_packages RELEASE [OPTION...]: the packages of its image: one, or since 7.3 several that the one depends on.
kernel_packages() {
    local release=$1
    shift
    echo "linux-image-$release"
    APT_CONFIG=$apt/apt.conf apt-cache "$@" --important depends "linux-image-$release" |
        sed -n "s/^  Depends: \(linux-[a-z]*-$release\)\$/\1/p"
}

# unpack_kernel DEBS OUT RELEASE: unpack Debian's packages of a kernel, or of its headers alone, in the kernel's folder OUT.
unpack_kernel() {
    local debs=$1 out=$2 release=$3 deb headers image
    headers=$out/kernel/usr/src/linux-headers-$release
    rm -rf "$out/kernel"
    for deb in "$debs"/*.deb; do
        dpkg-deb -x "$deb" "$out/kernel"
    done
    # The headers expect to lie in /usr/src; all but what their Makefile begins with is relative.
    sed -i "s,^\(include \|KBUILD_OUTPUT=\)/usr,\1$out/kernel/usr," "$headers/Makefile"
    ln -sfn "$headers" "$out/headers"
    echo "$release" >"$out/kernel-version"
    # Since 7.3 all of it is in /usr: the rest looks where it was before.
    [ -e "$out/kernel/lib" ] || ln -s usr/lib "$out/kernel/lib"
    image=$out/kernel/boot/vmlinuz-$release
    if [ -e "$out/kernel/lib/modules/$release/vmlinuz" ]; then
        mkdir -p "$out/kernel/boot"
        ln -s "../lib/modules/$release/vmlinuz" "$image"
    fi
    [ -e "$image" ] || return 0
    depmod -b "$out/kernel" "$release"
    bootable "$image" "$out/vmlinux" "$headers"
}
