#!/usr/bin/env bash
# Serves a sample directory with the gofer given as $1, and shows what a client sees. Leaves nothing behind.
set -euo pipefail
gofer=$1
work=$(mktemp -d)
server=
cleanup() {
    [ -z "$server" ] || { kill "$server" 2>/dev/null || true; wait "$server" 2>/dev/null || true; }
    rm -rf "$work"
}
trap cleanup EXIT

mkdir -p "$work/root/docs"
echo "hello from the host" >"$work/root/hello.txt"
socket=$work/gofer.sock
client() { "$gofer" client --socket "$socket" "$@"; }
show() { printf '\n$ gofer client %s\n' "$*"; client "$@"; }

"$gofer" serve --root "$work/root" --socket "$socket" &
server=$!
for _ in $(seq 100); do [ -S "$socket" ] && break; sleep 0.05; done

show stat /hello.txt
show mkdir /docs/new
echo "written through the server" >"$work/note"
show put "$work/note" /docs/note.txt
show cat /docs/note.txt
show ls -l /docs
show mv /docs/note.txt /note.txt
show rm /note.txt
show ping

printf '\nThe server process, its clients having come and gone:\n'
awk '/^(Rss|Pss|Pss_Anon|Private_Dirty):/ { printf "  %-15s %6d KiB\n", $1, $2 }' "/proc/$server/smaps_rollup"
awk '/^Threads:/ { printf "  %-15s %6d\n", $1, $2 }' "/proc/$server/status"

kill -TERM "$server"
wait "$server"
server=
if [ -e "$socket" ]; then
    echo "the socket is still there" >&2
    exit 1
fi
printf '\nThe server ended in good order and removed its socket.\n'
