#!/bin/sh
# Puts what the virtual machine of the tests needs in place: qemu, installed, and Debian's cloud kernel, unpacked
# but never installed. Quick when there is nothing left to do. Without root, or on a host that is not Debian's, it
# says what is missing instead.
#
#   target/vm/vmlinuz     the kernel image; its modules are left out, the guest loads none
#   target/vm/config      what was built into it
#   target/vm/package     the package it came from, e.g. linux-image-6.1.0-57-cloud-amd64
set -eu

metapackage=linux-image-cloud-amd64
qemu=qemu-system-x86_64
vm=$(CDPATH= cd -- "$(dirname -- "$0")/../.." && pwd)/target/vm

main() {
    have_qemu || install_qemu
    have_kernel || unpack_kernel
    echo "vm: $(command -v $qemu), $(cat "$vm/package")"
}

have_qemu() { command -v $qemu >/dev/null; }

have_kernel() { [ -s "$vm/vmlinuz" ] && [ -s "$vm/config" ] && [ -s "$vm/package" ]; }

install_qemu() {
    need apt-get "$qemu (Debian: qemu-system-x86)"
    [ "$(id -u)" = 0 ] || fail "$qemu is missing: as root, apt-get install --no-install-recommends qemu-system-x86"
    refresh_lists_once
    DEBIAN_FRONTEND=noninteractive apt-get install -y -q --no-install-recommends qemu-system-x86
}

unpack_kernel() {
    need apt-get "a kernel at $vm/vmlinuz"
    need dpkg-deb "a kernel at $vm/vmlinuz"
    refresh_lists_once
    package=$(concrete_package)
    [ -n "$package" ] || fail "apt knows no $metapackage: as root, apt-get update"

    # Everything happens beside the final place, which then is renamed: an interrupted run leaves nothing half done.
    mkdir -p "$(dirname "$vm")"
    work=$(mktemp -d "$vm.XXXXXX")
    trap 'rm -rf "$work"' EXIT
    # As root, apt would download as a user of its own, who cannot write here.
    (cd "$work" && apt-get -q -o APT::Sandbox::User=root download "$package")
    dpkg-deb -x "$work"/*.deb "$work/unpacked"

    mkdir "$work/vm"
    mv "$work"/unpacked/boot/vmlinuz-* "$work/vm/vmlinuz"
    mv "$work"/unpacked/boot/config-* "$work/vm/config"
    echo "$package" >"$work/vm/package"
    rm -rf "$vm"
    mv "$work/vm" "$vm"
}

# The metapackage is empty and depends on the kernel of the day.
concrete_package() {
    apt-cache depends "$metapackage" 2>/dev/null | sed -n 's/^ *Depends: \(linux-image-[0-9].*\)$/\1/p' | head -n 1
}

# A fresh machine has no package lists, or only old ones that name files which are gone.
refresh_lists_once() {
    [ -z "${refreshed:-}" ] || return 0
    refreshed=yes
    if [ "$(id -u)" = 0 ]; then apt-get update -q; fi
}

need() { command -v "$1" >/dev/null || fail "$2 is missing, and there is no $1 to bring it"; }

fail() {
    echo "vm: $*" >&2
    exit 1
}

main
