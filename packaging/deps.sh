#!/bin/sh
# Installs the Debian packages that the tests on a real display use, where that
# is possible; otherwise says what will be skipped. Never fails: the tests skip
# by name what they miss.
set -u
need=""
have() { command -v "$1" >/dev/null 2>&1 || need="$need $2"; }
have gcc gcc
have Xvfb xvfb
have jwm jwm
have mousepad mousepad
have xterm xterm
have xclip xclip
have xdotool xdotool
have xprop x11-utils
have xmodmap x11-xserver-utils
have scrot scrot
have setxkbmap x11-xkb-utils
have dbus-daemon dbus
have git git
have xfce4-panel xfce4-panel
[ -x /usr/libexec/at-spi-bus-launcher ] || need="$need at-spi2-core"
[ -x /usr/lib/$(uname -m)-linux-gnu/xfce4/notifyd/xfce4-notifyd ] || need="$need xfce4-notifyd"
have chromium chromium
have openssl openssl
have python3 python3
[ -x /usr/libexec/at-spi-bus-launcher ] || need="$need at-spi2-core"
/usr/bin/python3 -c 'import gi; gi.require_version("Gtk", "3.0")' 2>/dev/null || need="$need python3-gi gir1.2-gtk-3.0"
have systemd-analyze systemd
have unzip unzip
have npm npm
[ -d /usr/share/fonts/truetype/dejavu ] || need="$need fonts-dejavu-core"
[ -e /usr/include/stdlib.h ] || need="$need libc6-dev"
[ -e /usr/include/X11/extensions/XTest.h ] || need="$need libxtst-dev libx11-dev"
echo "@interface A @end" | gcc -x objective-c -fsyntax-only - 2>/dev/null || need="$need gobjc"
have gnustep-config libgnustep-base-dev
[ -e /usr/include/GNUstep/AppKit/AppKit.h ] || need="$need libgnustep-gui-dev"
[ -d /usr/lib/GNUstep/Bundles/libgnustep-cairo-029.bundle ] || need="$need gnustep-back0.29-cairo"
[ -n "$need" ] || exit 0
sudo=""
if [ "$(id -u)" != 0 ]; then sudo="sudo -n"; fi
if command -v apt-get >/dev/null 2>&1 && { [ -z "$sudo" ] || $sudo true 2>/dev/null; }; then
	export DEBIAN_FRONTEND=noninteractive
	$sudo apt-get update -qq >/dev/null 2>&1
	# shellcheck disable=SC2086
	if $sudo env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends $need >/dev/null; then
		echo "installed:$need"
		exit 0
	fi
fi
echo "deps: could not install:$need"
echo "deps: tests that need them are skipped, each by name. As root: apt-get install -y --no-install-recommends$need"
