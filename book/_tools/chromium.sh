#!/bin/sh
# Print the path of a Chromium that starts; when there is none, install one by the system's package manager if we may.
set -u

find_chromium() {
    for name in "${CHROMIUM:-}" chromium chromium-browser google-chrome google-chrome-stable \
        "/Applications/Chromium.app/Contents/MacOS/Chromium" \
        "/Applications/Google Chrome.app/Contents/MacOS/Google Chrome"; do
        [ -n "$name" ] || continue
        path=$(command -v "$name") && "$path" --version >/dev/null 2>&1 && echo "$path" && return
    done
    return 1
}

find_chromium && exit

as_root=
[ "$(id -u)" = 0 ] || as_root="sudo -n"
if [ -z "$as_root" ] || sudo -n true 2>/dev/null; then
    echo "Installing Chromium for the browser tests..." >&2
    if command -v apt-get >/dev/null; then
        export DEBIAN_FRONTEND=noninteractive
        { $as_root apt-get update && $as_root apt-get install -y --no-install-recommends chromium; } >/dev/null </dev/null
    elif command -v dnf >/dev/null; then
        $as_root dnf install -y chromium >/dev/null </dev/null
    fi
fi

find_chromium && exit
echo "The browser tests need Chromium: install the package 'chromium' (or Chrome), or set CHROMIUM to its path." >&2
exit 1
