#!/bin/sh
# Installs what the integration tests use beside a Rust toolchain: strace, which counts host calls, mkfs for btrfs and
# ext4, what runs in sandboxes, what fetches them, and what maps ids for users. Quick when there is nothing left to do. Without root, or on a host that is not Debian's, it says what is
# missing instead, and the tests that need it say SKIPPED.
set -eu

# program:package
wanted='strace:strace mkfs.btrfs:btrfs-progs mkfs.ext4:e2fsprogs mount:mount find:findutils busybox:busybox-static
    sqlite3:sqlite3 git:git gcc:gcc make:make curl:curl xz:xz-utils newuidmap:uidmap'

main() {
    packages=$(missing)
    if [ -n "$packages" ]; then
        install $packages || complain "$(missing)"
    fi
    # Not to be installed: the kernel's or the container's to give.
    [ -c /dev/fuse ] || say "no /dev/fuse: tests of FUSE will be skipped"
    [ -c /dev/loop-control ] || say "no /dev/loop-control: tests on file system images will be skipped"
    [ "$(id -u)" = 0 ] || say "not root: tests that mount, make devices or change users will be skipped"
}

# Packages whose programs are not there. Where mkfs lives is not in everyone's PATH.
missing() {
    PATH=$PATH:/sbin:/usr/sbin
    for pair in $wanted; do
        command -v "${pair%%:*}" >/dev/null || printf '%s ' "${pair#*:}"
    done
}

install() {
    [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null || return 1
    export DEBIAN_FRONTEND=noninteractive
    # A fresh machine has no package lists, or only old ones that name files which are gone.
    apt-get install -y -q --no-install-recommends "$@" || {
        apt-get update -q
        apt-get install -y -q --no-install-recommends "$@"
    }
}

complain() { [ -z "$1" ] || say "missing, as root: apt-get install --no-install-recommends $1"; }

say() { echo "setup: $1"; }

main
