#!/bin/sh
# Puts every generation of runsc that this machine can reach into target/runsc, for the tests that run sandboxes.
# Nothing is installed. Quick when all is there; what cannot be had is said, generation by generation.
#
#   target/runsc/e22/runsc    Debian 12's package
#   target/runsc/e24/runsc    Debian 13's package, also in bookworm-backports
#   target/runsc/e26/runsc    upstream's, built by any Go from 1.21 on, which fetches the Go that it needs
set -eu

mirror=https://deb.debian.org/debian
package=runsc
module=gvisor.dev/gvisor/runsc
module_version=v0.0.0-20260905035102-160fafc42237
release=release-20260905.0

target=$(CDPATH= cd -- "$(dirname -- "$0")/.." && pwd)/target
all=$target/runsc

main() {
    mkdir -p "$all"
    # Beside the final places, to be renamed: an interrupted run leaves nothing half done.
    work=$(mktemp -d "$all/.work.XXXXXX")
    trap 'rm -rf "$work"' EXIT
    trap 'exit 1' HUP INT TERM
    lacking=
    bring e22 from_debian 0.0~2022 bookworm
    bring e24 from_debian 0.0~2024 bookworm-backports trixie
    bring e26 from_go
    [ -z "$lacking" ] || { say "MISSING:$lacking"; exit 1; }
}

# bring GENERATION HOW ARGUMENT...: leaves the program in $work/GENERATION/runsc, then puts it in place.
bring() {
    generation=$1
    shift
    if [ ! -x "$all/$generation/runsc" ]; then
        mkdir "$work/$generation"
        if "$@" && runs "$work/$generation/runsc"; then
            rm -rf "${all:?}/$generation"
            mv "$work/$generation" "$all/$generation"
        else
            lacking="$lacking $generation"
            return 0
        fi
    fi
    say "$generation: $("$all/$generation/runsc" --version | head -n 1)"
}

runs() { "$1" --version >/dev/null || { say "$generation: what was fetched does not run"; return 1; }; }

# from_debian VERSION-PREFIX SUITE...: out of the first suite that has it.
from_debian() {
    wanted=$1
    shift
    architecture=$(debian_architecture) || return 1
    for suite in "$@"; do
        if unpack "$suite"; then return 0; fi
    done
    say "$generation: no package $package $wanted* could be had from $*"
    return 1
}

debian_architecture() {
    case $(uname -m) in
    x86_64) echo amd64 ;;
    aarch64) echo arm64 ;;
    *) say "$generation: Debian has no $package for $(uname -m)" && return 1 ;;
    esac
}

# The index is trusted as far as the mirror's certificate, the package as far as its hash in the index.
unpack() {
    index=$work/$1.Packages
    deb=$work/$generation.deb
    tree=$work/$generation.tree
    download "$mirror/dists/$1/main/binary-$architecture/Packages.xz" "$index.xz" || return 1
    xz -dc "$index.xz" >"$index" || return 1
    found=$(named_in_index) || return 1
    [ -n "$found" ] || return 1
    download "$mirror/${found% *}" "$deb" || return 1
    echo "${found#* }  $deb" | sha256sum -c --quiet - || return 1
    extract || return 1
    mv "$tree/usr/bin/runsc" "$work/$generation/runsc"
}

# "FILE HASH" of the package, if its version is of the generation that is wanted.
named_in_index() {
    awk -v name="$package" -v wanted="$wanted" '
        /^$/ { if (p == name && index(v, wanted) == 1) { print f, h; exit } p = v = f = h = "" }
        /^Package: / { p = $2 } /^Version: / { v = $2 } /^Filename: / { f = $2 } /^SHA256: / { h = $2 }
    ' "$index"
}

extract() {
    mkdir -p "$tree"
    if command -v dpkg-deb >/dev/null; then
        dpkg-deb -x "$deb" "$tree"
    else
        (cd "$tree" && ar x "$deb" && tar -xf data.tar.*)
    fi
}

download() {
    if command -v curl >/dev/null; then
        curl -fsSL --retry 3 -o "$2" "$1"
    elif command -v wget >/dev/null; then
        wget -q -O "$2" "$1"
    elif [ -x /usr/lib/apt/apt-helper ]; then
        /usr/lib/apt/apt-helper -q -o APT::Sandbox::User=root download-file "$1" "$2"
    else
        say "$generation: neither curl, wget nor apt-helper to fetch $1"
        return 1
    fi
}

from_go() {
    go=$(any_go) || { say "$generation: no Go from 1.21 on, and none could be installed"; return 1; }
    # A cgo build is dynamic, and fails when it executes itself again after the pivot. Without the version,
    # --version says nothing useful. Modules and their cache stay out of the user's own; writable, to be cleaned.
    GOTOOLCHAIN=auto CGO_ENABLED=0 GOBIN=$work/$generation GOPATH=$target/go GOCACHE=$target/go/build \
        GOFLAGS=-modcacherw "$go" install -ldflags "-s -w -X $module/version.version=$release" \
        "$module@$module_version" || { say "$generation: go install failed"; return 1; }
}

# The path of a Go that can fetch a newer one: in PATH, from Debian, or, as root, installed from Debian.
any_go() {
    usable_go && return 0
    [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null || return 1
    {
        apt-get update -q
        DEBIAN_FRONTEND=noninteractive apt-get install -y -q --no-install-recommends golang-1.23-go ||
            DEBIAN_FRONTEND=noninteractive apt-get install -y -q --no-install-recommends -t bookworm-backports \
                golang-1.23-go ||
            DEBIAN_FRONTEND=noninteractive apt-get install -y -q --no-install-recommends golang-go
    } >&2 || return 1
    usable_go
}

usable_go() {
    for candidate in go /usr/local/go/bin/go /usr/lib/go-*/bin/go; do
        candidate=$(command -v "$candidate") || continue
        minor=$("$candidate" env GOVERSION 2>/dev/null | sed -n 's/^go1\.\([0-9]*\).*/\1/p')
        if [ "${minor:-0}" -ge 21 ]; then
            echo "$candidate"
            return 0
        fi
    done
    return 1
}

say() { echo "runsc: $*" >&2; }

main
