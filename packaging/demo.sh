#!/bin/sh
# The main job end to end.
set -eu
"$DRAWBRIDGE" version
