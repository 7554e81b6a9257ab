#!/usr/bin/env bash
# Cheap promises about the sources, checked by looking.
set -euo pipefail
cd "$(dirname "$0")/.."
failed=0
refuse() {
    if [ -n "$2" ]; then
        printf '%s:\n%s\n' "$1" "$2" >&2
        failed=1
    fi
}
sources() { git ls-files -- '*.rs' '*.sh' '*.toml' Makefile; }

refuse "not ASCII" "$(sources | xargs grep -nP '[^\x00-\x7F]' || true)"
refuse "unfinished" "$(git grep -nE 'todo!\(|unimplemented!\(|dbg!\(' -- '*.rs' || true)"
refuse "ignored tests without a reason" "$(git grep -nE '#\[ignore\]' -- '*.rs' || true)"

# unsafe lives in these files and nowhere else in what is shipped.
allowed='^(protocol/src/transport/window\.rs|gofer/early/src/(entry|exec|lib|payload|syscall)\.rs|gofer/src/(host/place|launch/child|launch/idmap|memory|prepare/setattr|process/descriptors|process/moment|serve/interrupt|serve/oversize)\.rs|gofer/src/cli/(inherited|limits)\.rs|gofer/src/confine/tests/forbidden\.rs)$'
refuse "unsafe outside its files" \
    "$(git grep -lE 'unsafe (\{|impl|fn)' -- 'protocol/src/*.rs' 'gofer/src/*.rs' 'gofer/early/src/*.rs' 'sizing/src/*.rs' | grep -vE "$allowed" || true)"

# Each line of the budget table names a test that exists.
for test in $(sed -n 's/^|.*| `\([a-z0-9_]*\)` |$/\1/p' BUDGETS.md); do
    git grep -q "fn $test" -- '*.rs' || refuse "BUDGETS.md names a test that is not there" "$test"
done

# So do the tables of differences and of known faults.
for test in $(grep -ohE '`[a-z0-9]+(_[a-z0-9]+){2,}`' docs/parity.md docs/known-faults.md | tr -d '`' | sort -u); do
    git grep -q "$test" -- '*.rs' || refuse "a document names a test that is not there" "$test"
done

# Every flag is explained where people look for it.
for flag in $(grep -A3 '#\[arg(' gofer/src/cli/serve.rs |
    sed -n 's/^ *\(pub \)\?\([a-z_]*\): .*,$/\2/p' | tr _ -); do
    grep -q -- "--$flag" README.md || refuse "flag of serve not in README.md" "--$flag"
done
exit "$failed"
