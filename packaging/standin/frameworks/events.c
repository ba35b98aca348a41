/* CoreGraphics events that land on an X display by XTEST.
 *
 * What applications do with an event on a Mac is played here, with the faults
 * that were reported for each sequence done wrong, so that a driver which gets
 * it wrong is seen:
 *   - without the grants events are dropped, and nobody is told (CGEvent.h:
 *     CGRequestPostEventAccess; go-gui-org/go-gui#303);
 *   - motion with a button down that is not of the dragged kind, or has no
 *     deltas, moves nothing (jtroo/kanata#2061, iFurySt/open-codex-computer-use#53);
 *   - an event acts with its own flags, whatever is held (trycua/cua#3849);
 *   - a modifier is seen only as a change of flags (ghostty-org/ghostty#12883);
 *   - a string is cut after 20 UTF-16 units (enigo-rs/enigo#68) and entered on
 *     the press and on the release (stablyai/orca#17998);
 *   - a positive wheel is up, and left (feschber/lan-mouse#481); with the setting
 *     reversed the other way round, as others have measured it (dsh-plugin-computer-use
 *     on macOS 26);
 *   - while somebody reads the keyboard securely no key arrives
 *     (bitwarden/clients#21964).
 */
#include "events.h"
#include "keyboard.h"
#include <X11/XKBlib.h>
#include <X11/extensions/XTest.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct source { struct object o; double interval; uint32_t filter[2]; int64_t data; };

/* What has been posted and is down; guarded by standin_lock. */
static bool keys[128], buttons[8], mods[4];
static const struct { uint64_t flag; int code; unsigned char x; } modifiers[4] = {{0x20000, 56, 50}, {0x40000, 59, 37}, {0x80000, 58, 64}, {0x100000, 55, 133}};

/* CGEventSource.h: a quarter of a second, in which only system events pass. */
API void *CGEventSourceCreate(int32_t state) {
	if (state < -1 || state > 1) return NULL;
	struct source *s = standin_new(KIND_SOURCE, sizeof *s);
	s->interval = 0.25, s->filter[0] = s->filter[1] = 4;
	return s;
}
static bool deaf(void) {
	pthread_mutex_lock(&standin_lock);
	bool d = standin.deaf;
	pthread_mutex_unlock(&standin_lock);
	return d;
}
API void CGEventSourceSetUserData(struct source *s, int64_t d) { s->data = d; }
API void CGEventSourceSetLocalEventsSuppressionInterval(struct source *s, double t) { if (!deaf()) s->interval = t; }
API double CGEventSourceGetLocalEventsSuppressionInterval(struct source *s) { return s->interval; }
API void CGEventSourceSetLocalEventsFilterDuringSuppressionState(struct source *s, uint32_t filter, uint32_t state) { if (!deaf()) s->filter[state & 1] = filter; }
API uint32_t CGEventSourceGetLocalEventsFilterDuringSuppressionState(struct source *s, uint32_t state) { return s->filter[state & 1]; }
/* State 1 is the hardware's, which nothing posted here touches. */
API bool CGEventSourceKeyState(int32_t state, uint16_t key) {
	pthread_mutex_lock(&standin_lock);
	bool down = state == 0 && key < 128 && keys[key];
	pthread_mutex_unlock(&standin_lock);
	return down;
}
API bool CGEventSourceButtonState(int32_t state, uint32_t button) {
	pthread_mutex_lock(&standin_lock);
	bool down = state == 0 && button < 8 && buttons[button];
	pthread_mutex_unlock(&standin_lock);
	return down;
}

static struct event *event(struct source *s, uint32_t type) {
	struct event *e = standin_new(KIND_EVENT, sizeof *e);
	e->type = type;
	if (s) {
		e->fields[42] = s->data;
		e->suppresses = s->interval > 0 && s->filter[0] != 7;
	} else e->suppresses = true;
	return e;
}
CGPoint standin_pointer(void) {
	CGPoint p = {0, 0};
	Window root, child;
	int x, y, wx, wy;
	unsigned mask;
	if (!standin_x() || !XQueryPointer(standin_x(), DefaultRootWindow(standin_x()), &root, &child, &x, &y, &wx, &wy, &mask)) return p;
	for (int i = 0; i < standin.n; i++) {
		struct display *d = &standin.displays[i];
		if (x >= d->px && y >= d->py && x < d->px + d->w * d->scale && y < d->py + d->h * d->scale)
			return (CGPoint){d->x + (x - d->px) / d->scale, d->y + (y - d->py) / d->scale};
	}
	return p;
}
API void *CGEventCreate(struct source *s) {
	struct event *e = event(s, 0);
	pthread_mutex_lock(&standin_lock);
	e->p = standin_pointer();
	pthread_mutex_unlock(&standin_lock);
	return e;
}
API CGPoint CGEventGetLocation(struct event *e) { return e->p; }
API void *CGEventCreateMouseEvent(struct source *s, uint32_t type, CGPoint p, uint32_t button) {
	struct event *e = event(s, type);
	e->p = p, e->button = button;
	return e;
}
API void *CGEventCreateKeyboardEvent(struct source *s, uint16_t key, bool down) {
	struct event *e = event(s, down ? KEY_DOWN : KEY_UP);
	e->key = key;
	return e;
}
API void *CGEventCreateScrollWheelEvent2(struct source *s, uint32_t units, uint32_t n, int32_t a, int32_t b, int32_t c) {
	if (units > 1 || n < 1 || n > 3) return NULL;
	struct event *e = event(s, WHEEL);
	int line = units == 1 ? 10 : 1; /* CGEventSource.h: ten pixels a line by default */
	e->wheel[0] = a * line, e->wheel[1] = n > 1 ? b * line : 0;
	return e;
}
API void CGEventKeyboardSetUnicodeString(struct event *e, unsigned long n, const uint16_t *units) {
	e->n = n > 20 ? 20 : n;
	memcpy(e->units, units, e->n * sizeof *units);
}
API uint32_t CGEventGetType(struct event *e) { return e->type; }
API void CGEventSetType(struct event *e, uint32_t type) { e->type = type; }
API void CGEventSetFlags(struct event *e, uint64_t flags) { e->flags = flags; }
API void CGEventSetIntegerValueField(struct event *e, uint32_t field, int64_t v) { if (field < 192) e->fields[field] = v; }
API int64_t CGEventGetIntegerValueField(struct event *e, uint32_t field) { return field < 192 ? e->fields[field] : 0; }

static void x_key(unsigned code, bool down) { XTestFakeKeyEvent(standin_x(), code, down, 0); XSync(standin_x(), False); }

static void warp(CGPoint p) {
	struct display *d = standin_at(p.x, p.y);
	if (!d) return;
	double x = fmin(fmax(p.x - d->x, 0), d->w - 1), y = fmin(fmax(p.y - d->y, 0), d->h - 1);
	int px = d->px + (int)lround(x * d->scale), py = d->py + (int)lround(y * d->scale), now_x, now_y, wx, wy;
	Window root, child;
	unsigned mask;
	XQueryPointer(standin_x(), DefaultRootWindow(standin_x()), &root, &child, &now_x, &now_y, &wx, &wy, &mask);
	if (px == now_x && py == now_y) return;
	XTestFakeMotionEvent(standin_x(), 0, px, py, 0);
	XSync(standin_x(), False);
}

/* What is down is so for every process, as the window server has it: who died may
 * have left it. */
static bool is_down(int keycode) {
	char keys[32];
	XQueryKeymap(standin_x(), keys);
	return keys[keycode / 8] >> keycode % 8 & 1;
}

/* Puts the X modifiers as an event's flags say, and back again. */
static void flags(uint64_t want, bool back) {
	for (int i = 0; i < 4; i++) {
		bool now = want & modifiers[i].flag;
		if (now != mods[i]) x_key(modifiers[i].x, back ? mods[i] : now);
	}
}

/* Waits until the application that has the keyboard has taken what was sent so
 * far: it answers a _NET_WM_PING (Extended Window Manager Hints). */
static void taken(void) {
	Display *x = standin_x();
	static long serial;
	Atom protocols = XInternAtom(x, "WM_PROTOCOLS", False), ping = XInternAtom(x, "_NET_WM_PING", False);
	Window w, root = DefaultRootWindow(x), parent, *children, top = 0;
	int revert;
	unsigned n;
	XGetInputFocus(x, &w, &revert);
	while (!top && w > PointerRoot && w != root) {
		Atom *list;
		int count = 0;
		if (XGetWMProtocols(x, w, &list, &count)) {
			for (int i = 0; i < count; i++)
				if (list[i] == ping) top = w;
			XFree(list);
		}
		if (!XQueryTree(x, w, &root, &parent, &children, &n)) break;
		if (children) XFree(children);
		w = parent;
	}
	if (!top) {
		usleep(100000);
		return;
	}
	XSelectInput(x, root, SubstructureNotifyMask);
	XEvent e = {.xclient = {.type = ClientMessage, .window = top, .message_type = protocols, .format = 32}};
	e.xclient.data.l[0] = ping, e.xclient.data.l[1] = ++serial, e.xclient.data.l[2] = top;
	XSendEvent(x, top, False, 0, &e);
	XFlush(x);
	for (int ms = 0; ms < 5000; ms++) {
		while (XPending(x)) {
			XNextEvent(x, &e);
			if (e.type == ClientMessage && e.xclient.message_type == protocols && e.xclient.data.l[1] == serial) {
				XSelectInput(x, root, 0);
				return;
			}
		}
		usleep(1000);
	}
	XSelectInput(x, root, 0);
}

/* Enters a string: each character gets a keycode of the X display. What is
 * missing is bound at once, and pressed when the application has heard of it; a
 * keycode in use is bound anew only when its last press has been looked up. */
static void text(const uint16_t *units, int n) {
	/* Media keys, which nobody presses here. */
	enum { FIRST = 208, MOST = 48 };
	static int next;
	static KeySym bound[MOST];
	static Display *of;
	Display *x = standin_x();
	if (of != x) {
		of = x, next = 0;
		memset(bound, 0, sizeof bound);
	}
	KeySym all[20];
	int chars = 0, at[20];
	bool used[MOST] = {false};
	for (int i = 0; i < n; i++) {
		uint32_t c = units[i];
		if (c >= 0xd800 && c < 0xdc00 && i + 1 < n) c = 0x10000 + ((c - 0xd800) << 10) + (units[++i] - 0xdc00);
		all[chars++] = c < 0x100 ? c : 0x01000000 | c;
	}
	for (int i = 0; i < chars; i++) {
		at[i] = 0;
		while (at[i] < MOST && bound[at[i]] != all[i]) at[i]++;
		if (at[i] < MOST) used[at[i]] = true;
	}
	bool fresh = false, waited = false;
	for (int i = 0; i < chars; i++) {
		for (int j = 0; at[i] == MOST && j < i; j++)
			if (all[j] == all[i]) at[i] = at[j];
		if (at[i] < MOST) continue;
		while (used[next]) next = (next + 1) % MOST;
		at[i] = next, used[next] = fresh = true;
		if (bound[next] && !waited) taken(), waited = true;
		bound[next] = all[i];
	}
	if (fresh) {
		/* All in one request: clients read only the part that the last of several
		 * notes of changes names. */
		KeySym both[MOST][2];
		for (int i = 0; i < MOST; i++) both[i][0] = both[i][1] = bound[i];
		XChangeKeyboardMapping(x, FIRST, 2, both[0], MOST);
		XSync(x, False);
		taken();
	}
	for (int i = 0; i < chars; i++) {
		x_key(FIRST + at[i], true);
		x_key(FIRST + at[i], false);
	}
}

bool standin_held(void) {
	bool held = false;
	for (int i = 0; i < 8; i++) held |= buttons[i];
	return held;
}

static const unsigned char x_buttons[8] = {1, 3, 2, 8, 9};

static void deliver(struct event *e) {
	Display *x = standin_x();
	const char *flawed = "";
	bool key = e->type == KEY_DOWN || e->type == KEY_UP || e->type == FLAGS_CHANGED;
	int64_t button = e->type == LEFT_DOWN || e->type == LEFT_UP || e->type == LEFT_DRAGGED ? 0 :
		e->type == RIGHT_DOWN || e->type == RIGHT_UP || e->type == RIGHT_DRAGGED ? 1 : e->fields[3];
	bool dragged = e->type == LEFT_DRAGGED || e->type == RIGHT_DRAGGED || e->type == OTHER_DRAGGED;
	bool held = standin_held();
	CGPoint from = standin_pointer();

	if (!standin.trusted || !standin.post) flawed = " dropped";
	else if (standin.locked || !standin.graphic) flawed = " to-the-login-window";
	else if (standin.secure && key) flawed = " blocked";
	else if (e->type == MOVED && held) flawed = " not-dragged";
	else if (dragged && !held) flawed = " nothing-held";
	else if (dragged && !e->fields[4] && !e->fields[5] && (fabs(from.x - e->p.x) >= 1 || fabs(from.y - e->p.y) >= 1)) flawed = " no-deltas";
	else if ((e->type == KEY_DOWN || e->type == KEY_UP) && e->key >= 54 && e->key <= 63 && e->key != 57) flawed = " no-change-of-flags";

	char what[64];
	if (e->type == WHEEL) snprintf(what, sizeof what, "wheel %d,%d", e->wheel[0], e->wheel[1]);
	else if (key) snprintf(what, sizeof what, "%s %d units=%d", e->type == KEY_DOWN ? "key-down" : e->type == KEY_UP ? "key-up" : "flags-changed", e->key, e->n);
	else if (e->type == MOVED || dragged) snprintf(what, sizeof what, "%s %g,%g delta=%ld,%ld", dragged ? "dragged" : "moved", e->p.x, e->p.y, (long)e->fields[4], (long)e->fields[5]);
	else snprintf(what, sizeof what, "%s %ld at %g,%g clicks=%ld number=%ld", e->type == LEFT_DOWN || e->type == RIGHT_DOWN || e->type == OTHER_DOWN ? "down" : "up",
		(long)button, e->p.x, e->p.y, (long)e->fields[1], (long)e->fields[0]);
	standin_note("%s flags=%lx tag=%lx%s%s", what, (unsigned long)e->flags, (unsigned long)e->fields[42], e->suppresses ? " suppresses" : "", flawed);
	if (!*flawed || !strncmp(flawed, " no", 3)) standin_heard(e, false); /* what no application takes is an event all the same */
	if (*flawed || !x) return;

	if (e->type == FLAGS_CHANGED) {
		for (int i = 0; i < 4; i++)
			if (modifiers[i].code == e->key) {
				mods[i] = keys[e->key] = e->flags & modifiers[i].flag;
				x_key(modifiers[i].x, mods[i]);
			}
		return;
	}
	flags(e->flags, false);
	switch (e->type) {
	case MOVED: case LEFT_DRAGGED: case RIGHT_DRAGGED: case OTHER_DRAGGED:
		warp(e->p);
		break;
	case LEFT_DOWN: case RIGHT_DOWN: case OTHER_DOWN: case LEFT_UP: case RIGHT_UP: case OTHER_UP:
		if (button < 0 || button > 4) break;
		buttons[button] = e->type == LEFT_DOWN || e->type == RIGHT_DOWN || e->type == OTHER_DOWN;
		warp(e->p);
		XTestFakeButtonEvent(x, x_buttons[button], buttons[button], 0);
		break;
	case WHEEL:
		for (int axis = 0; axis < 2; axis++) {
			bool up = (e->wheel[axis] > 0) != standin.reversed;
			int clicks = (abs(e->wheel[axis]) + 39) / 40, b = axis == 0 ? (up ? 4 : 5) : (up ? 6 : 7);
			while (clicks-- > 0) XTestFakeButtonEvent(x, b, True, 0), XTestFakeButtonEvent(x, b, False, 0);
		}
		break;
	case KEY_DOWN: case KEY_UP:
		if (e->n) text(e->units, e->n);
		else if (standin_keycode(e->key) && (e->type == KEY_DOWN || is_down(standin_keycode(e->key)))) {
			keys[e->key] = e->type == KEY_DOWN;
			x_key(standin_keycode(e->key), keys[e->key]);
		}
		break;
	}
	XSync(x, False);
	flags(e->flags, true);
}

API void CGEventPost(uint32_t tap, struct event *e) {
	pthread_mutex_lock(&standin_lock);
	deliver(e);
	pthread_mutex_unlock(&standin_lock);
}
