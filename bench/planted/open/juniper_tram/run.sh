#!/bin/sh
# Makes the depot, then trains from it.
set -e
depot=$(mktemp -d)
trap 'rm -rf "$depot"' EXIT
python -m tram fill --depot "$depot"
python -m tram train --depot "$depot" "$@"
