#!/usr/bin/env bash
# Two machines and a hub between them, from the first push to a session that went on in two places. `docs/sync.md` walks
# through it; the tests run it against a bare Git repository and a bucket.
#
#   two-machines.sh FOLDER HUB...     machines are folders below FOLDER; each HUB is a URL (git+file://..., s3://...)
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
work=$1
shift

run() {
    printf '\n$ %s\n' "$*" | sed "s|$here/||g; s|$work/||g"
    "$@" 2>&1 | sed "s|$work/||g"
}
on() { # on MACHINE WORD...: the command on that machine's store
    local machine=$1
    shift
    printf '\n%s$ objstore %s\n' "$machine" "$*" | sed "s|$here/||g; s|$work/||g"
    objstore --store "$work/$machine/.objstore" "$@" 2>&1 | sed "s|$work/||g"
}
same() { # same A B: both machines export the same files, once the person is at the same node on both
    local machine
    for machine in "$@"; do
        rm -rf "$work/$machine/export"
        mkdir "$work/$machine/export"
        objstore --store "$work/$machine/.objstore" -q lineage export "$work/$machine/export/lineage.sqlite"
        objstore --store "$work/$machine/.objstore" -q lineage export "$work/$machine/export/lineage.json"
        objstore --store "$work/$machine/.objstore" -q session cd --sid "$sid_asked" 1 >/dev/null
        objstore --store "$work/$machine/.objstore" -q session export --sid "$sid_asked" "$work/$machine/export/session.db"
        objstore --store "$work/$machine/.objstore" show-ref | sort >"$work/$machine/export/refs"
    done
    diff -r "$work/$1/export" "$work/$2/export"
    printf '\n%s and %s export the same %s files, byte for byte\n' "$1" "$2" "$(find "$work/$1/export" -type f | wc -l)"
}
ask() { # ask MACHINE QUESTION: one more turn in the session
    on "$1" session ask --sid "$sid_asked" "$2"
}

mkdir -p "$work"
on a init
on a import "$here/fixtures/home/.claude" "$here/fixtures/home/.pi"
on a session source add "$here/fixtures/documents/skarv-lighthouse.md"
sid_asked=$(objstore --store "$work/a/.objstore" session new)
ask a "When was the lighthouse first lit?"

number=0
for hub in "$@"; do
    number=$((number + 1))
    other=b$number
    on a remote add "hub$number" "$hub"
    on a push "hub$number"

    run objstore clone "$hub" "$work/$other"
    ask "$other" "Who kept the lighthouse?"
    on "$other" push
    on a pull "hub$number"
    on a verify
    on "$other" verify
    same a "$other"

    # Both go on without having heard of each other.
    ask a "Who designed the lighthouse? ($number)"
    ask "$other" "Where does the lighthouse stand? ($number)"
    on a push "hub$number"
    on "$other" push
    on "$other" pull
    on "$other" for-each-ref "session/$sid_asked/heads/*"
    on "$other" session graft "$sid_asked"
    on "$other" session tree --sid "$sid_asked"
    on "$other" push
    on a pull "hub$number"
    on a verify
    same a "$other"
done
