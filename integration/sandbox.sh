#!/usr/bin/env bash
# Boots a sandbox whose files are served by the gofer given as $1, runs a command in it, and shows the gofer next to the
# one that the same runsc brings. Uses the runsc that is there, builds none; without one, or without the rights that it
# needs, says so and ends with 3. Leaves nothing behind.
set -euo pipefail
gofer=$1
rounds=7
here=$(cd "$(dirname "$0")/.." && pwd)

main() {
    [ "$(id -u)" = 0 ] || without "not root"
    busybox=$(command -v busybox) && ! ldd "$busybox" >/dev/null 2>&1 || without "no static busybox: apt-get install busybox-static"
    runsc=$(find_runsc) || without "no runsc in target/runsc (make runsc) nor in PATH"
    work=$(mktemp -d)
    trap cleanup EXIT
    chmod 0755 "$work" # the sandbox runs as nobody
    options=(--root="$work/state" --network=none)
    case $("$runsc" --version) in *2022*) options+=(--platform=ptrace) ;; esac
    mkdir -p "$work/volume" "$work/state" "$work/rootfs/bin" "$work/rootfs/mnt"
    cp "$busybox" "$work/rootfs/bin/busybox"
    ln -s busybox "$work/rootfs/bin/sh"
    echo "served by the host's gofer" >"$work/volume/note"
    "$gofer" install --runsc "$runsc" --out "$work/ours" >/dev/null || without "gofer install refuses $runsc"

    echo "A sandbox of $("$runsc" --version | head -n 1), its files served by this gofer:"
    show_gofer ours "$work/ours"
    echo
    echo "The same with runsc's own gofer:"
    show_gofer stock "$runsc"
    echo
    echo "Start-up, 'runsc run true', median of $rounds in turns:"
    start_up
}

# A generation's own first, the newest of them, then what is installed.
find_runsc() {
    for place in "$here"/target/runsc/e26 "$here"/target/runsc/e24 "$here"/target/runsc/e22; do
        [ ! -x "$place/runsc" ] || { echo "$place/runsc"; return; }
    done
    command -v runsc
}

# $1 is the command.
bundle() {
    mkdir -p "$work/bundle"
    cat >"$work/bundle/config.json" <<JSON
{ "ociVersion": "1.0.0",
  "process": { "user": { "uid": 0, "gid": 0 }, "cwd": "/", "args": ["/bin/busybox", "sh", "-c", "$1"] },
  "root": { "path": "$work/rootfs" },
  "mounts": [{ "destination": "/mnt", "type": "bind", "source": "$work/volume", "options": ["rbind", "rw"] }],
  "linux": { "namespaces": [{ "type": "pid" }, { "type": "network" }, { "type": "mount" }] } }
JSON
}

show_gofer() {
    id=gofer-sample-$1-$$
    program=$2
    bundle "sleep 100"
    "$program" "${options[@]}" create --bundle "$work/bundle" --pid-file "$work/pid" "$id" </dev/null >"$work/said" 2>&1 ||
        { cat "$work/said" >&2; exit 1; }
    "$program" "${options[@]}" start "$id"
    printf '$ runsc exec ... sh -c "cat /mnt/note; echo from-inside > /mnt/%s"\n' "$1"
    "$program" "${options[@]}" exec "$id" /bin/busybox sh -c "cat /mnt/note; echo from-inside >/mnt/$1"
    [ "$(cat "$work/volume/$1")" = from-inside ] || { echo "the file did not reach the host" >&2; exit 1; }
    pid=$(gofer_of "$id")
    printf '  %-15s %6d\n' pid: "$pid"
    awk '/^(Pss|Pss_Anon|Private_Dirty):/ { printf "  %-15s %6d KiB\n", $1, $2 }' "/proc/$pid/smaps_rollup"
    awk '/^Threads:/ { printf "  %-15s %6d\n", $1, $2 }' "/proc/$pid/status"
    "$program" "${options[@]}" kill "$id" KILL
    "$program" "${options[@]}" delete --force "$id"
    id=
}

# E26 names the container on the gofer's command line; before, its state directory is the only one of this run.
gofer_of() {
    for process in /proc/[0-9]*; do
        words=$(tr '\0' ' ' <"$process/cmdline" 2>/dev/null) || continue
        case $words in "runsc-gofer "*"$work/bundle"*) echo "${process#/proc/}"; return ;; esac
    done
    echo "no gofer found" >&2
    return 1
}

start_up() {
    bundle true
    for round in $(seq "$rounds"); do
        once ours "$work/ours" "$round"
        once stock "$runsc" "$round"
    done
    for arm in ours stock; do
        printf '  %-15s %6d ms\n' "$arm:" "$(sort -n "$work/$arm.ms" | sed -n "$(((rounds + 1) / 2))p")"
    done
}

once() {
    from=$(date +%s%N)
    "$2" "${options[@]}" run --bundle "$work/bundle" "gofer-sample-$1-$3-$$" </dev/null >"$work/said" 2>&1 ||
        { cat "$work/said" >&2; exit 1; }
    echo $((($(date +%s%N) - from) / 1000000)) >>"$work/$1.ms"
}

without() { echo "no sandbox is shown: $1"; exit 3; }

id=
cleanup() {
    [ -z "$id" ] || "$program" "${options[@]}" delete --force "$id" >/dev/null 2>&1 || true
    # The first gofer of a state directory leaves its network name space pinned there (2026's runsc).
    umount "$work"/state/* 2>/dev/null || true
    rm -rf "$work"
}

main
