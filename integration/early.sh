#!/usr/bin/env bash
# What runs before libc calls nothing outside itself and needs no relocation.
#
# Usage: early.sh BINARY...
#
# First the object of gofer-early, in each profile: it may leave undefined only libc's _start and the linker's
# __ehdr_start, and may not use the global offset table or hold pointers in data. The linker may hide such a mistake in
# one build and not in the next, so the object is what counts. Then its code in the given binaries, which
# link-time optimisation has compiled anew: it may call and jump only to itself and to _start.
set -euo pipefail
cd "$(dirname "$0")/.."
triple=$(rustc -vV | sed -n 's/^host: //p')

case $triple in
x86_64-*-linux-*) ;;
*)
    echo "SKIPPED: integration/early.sh: only x86-64 Linux has code before libc"
    exit 0
    ;;
esac
for tool in nm readelf objdump; do
    command -v "$tool" >/dev/null || {
        echo "$tool is missing: install binutils" >&2
        exit 1
    }
done
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
failed=0
refuse() {
    if [ -n "$2" ]; then
        printf '%s:\n%s\n' "$1" "$2" >&2
        failed=1
    fi
}

look_at_object() {
    refuse "$1: a call out before libc has started" "$(nm --undefined-only "$2" |
        awk '$1 == "U" && $2 != "_start" && $2 != "__ehdr_start" { print $2 }')"
    refuse "$1: an address that is not relocated yet" "$(readelf --relocs --wide "$2" | awk '
        /^Relocation section/ { skip = /\.rela\.(debug|eh_frame)/ }
        !skip && /GOT|R_X86_64_64/ { print $3, $5 }')"
    nm "$2" | grep -q ' T shim_start$' || refuse "$1" "it has no shim_start"
}

# Link-time optimisation would leave bitcode only. A directory of its own has nothing older in it.
for profile in dev release; do
    CARGO_PROFILE_RELEASE_LTO=off CARGO_TARGET_DIR=$work/target \
        "${CARGO:-cargo}" build --quiet --locked --profile "$profile" -p gofer-early
    directory=$work/target/$triple/$([ "$profile" = dev ] && echo debug || echo "$profile")
    library=$(find "$directory/deps" -name 'libgofer_early-*.rlib')
    mkdir "$work/$profile"
    (cd "$work/$profile" && ar x "$library")
    objects=$(grep -lF shim_start "$work/$profile"/*.o || true)
    [ -n "$objects" ] || refuse "$library" "no object in it has shim_start"
    for object in $objects; do
        look_at_object "gofer-early, profile $profile" "$object"
    done
done

for binary; do
    # Branches out of the crate's functions whose target is neither the crate, _start, nor an offset in the same function.
    refuse "$binary: a branch out of what runs before libc" "$(
        objdump --disassemble --no-show-raw-insn --demangle "$binary" | awk '
            /^[0-9a-f]+ <.*>:$/ {
                name = $0; sub(/^[0-9a-f]+ </, "", name); sub(/>:$/, "", name)
                # options() and unmap_payload() are called by main, after libc.
                early = name == "shim_start" ||
                    (name ~ /gofer_early::(entry|exec|payload|syscall)::/ && name !~ / as core::fmt/)
                if (early) seen++
                next
            }
            !early { next }
            $2 ~ /^(call|j[a-z]+)$/ && $3 !~ /^\*/ {
                to = $0; sub(/^[^<]*</, "", to); sub(/>[^>]*$/, "", to); sub(/\+0x[0-9a-f]+$/, "", to)
                if (to != name && to != "_start" && to !~ /^gofer_early::/) print name ": " $0
            }
            $2 ~ /^(call|jmp)$/ && $3 ~ /^\*.*\(/ { print name ": " $0 }
            END { if (!seen) print "nothing of gofer-early is in it" }')"
done
exit "$failed"
