# SPDX-License-Identifier: GPL-2.0-or-later
# shellcheck shell=bash disable=SC2154
# Sourced after common.sh by the scripts that make file systems for guests.

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

# leave_out_documents ROOT: what nobody reads in a guest
leave_out_documents() {
    rm -rf "$1"/usr/share/{doc,man,locale} "$1/var/lib"
}

# squash ROOT FILE: a file system of it. Not compressed: the guests' emulated CPUs would unpack it.
squash() {
    mksquashfs "$1" "$2.new" -noappend -all-root -noI -noD -noF -noX -no-progress -quiet
    mv "$2.new" "$2"
}
