#!/bin/sh
# The main job end to end; DESKTOP=virtual does it against a real editor.
set -eu
exec "${GO:-go}" run ./packaging/demo -drawbridge "$DRAWBRIDGE" -desktop "${DESKTOP:-simulated}"
