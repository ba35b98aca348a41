/* Carbon's hot keys (CarbonEvents.h) as grabs of an X display.
 *
 * RegisterEventHotKey, CarbonEvents.h and CarbonEventsCore.h:
 *   - eventHotKeyExistsErr for one that this process has already, and with
 *     kEventHotKeyExclusive for one that another process has so too;
 *   - the event has the hot key's id as its direct object, typeEventHotKeyID;
 *   - it comes through the application's event loop, so to nobody without one.
 */
#include "standin.h"
#include "keyboard.h"
#include <X11/X.h>
#include <X11/Xlib.h>
#include <stdlib.h>
#include <string.h>

enum { CMD = 256, SHIFT = 512, OPTION = 2048, CONTROL = 4096, EXISTS = -9878, INVALID = -9879, WRONG = -50 };
struct id { uint32_t signature, id; };
struct hotkey { struct id id; int code; unsigned state; struct hotkey *next; };
struct type { uint32_t class, kind; };
struct fired { struct id id; };

/* All of it is the main thread's. */
static Display *x;
static struct hotkey *all;
static int32_t (*handler)(void *call, void *event, void *data);
static void *handler_data;
static bool refused;
static int the_target;
API void (*standin_loop_watch)(int fd, void (*readable)(void)); /* set by NSApplication's loop */

static int on_error(Display *d, XErrorEvent *e) { return refused = true, 0; }

static void readable(void) {
	while (XPending(x)) {
		XEvent e;
		XNextEvent(x, &e);
		if (e.type != KeyPress) continue;
		unsigned state = e.xkey.state & (ShiftMask | ControlMask | Mod1Mask | Mod4Mask);
		for (struct hotkey *k = all; k; k = k->next)
			if (k->code == (int)e.xkey.keycode && k->state == state && handler) {
				struct fired f = {k->id};
				handler(NULL, &f, handler_data);
				break;
			}
	}
}
/* With each of the locks, which a hot key does not mind. */
static void grab(struct hotkey *k, bool on) {
	static const unsigned locks[] = {0, LockMask, Mod2Mask, LockMask | Mod2Mask};
	for (int i = 0; i < 4; i++) {
		if (on) XGrabKey(x, k->code, k->state | locks[i], DefaultRootWindow(x), False, GrabModeAsync, GrabModeAsync);
		else XUngrabKey(x, k->code, k->state | locks[i], DefaultRootWindow(x));
	}
	XSync(x, False);
}

API void *GetApplicationEventTarget(void) { return &the_target; }
API int32_t InstallEventHandler(void *target, void *f, unsigned long n, const struct type *types, void *data, void **ref) {
	if (target != &the_target || n != 1 || types->class != 0x6b657962 || types->kind != 5) return WRONG;
	handler = f, handler_data = data;
	if (ref) *ref = &handler;
	return 0;
}
API int32_t GetEventParameter(struct fired *e, uint32_t name, uint32_t type, uint32_t *actual, unsigned long size, unsigned long *got, void *data) {
	if (name != 0x2d2d2d2d || type != 0x686b6964 || size < sizeof e->id) return WRONG;
	memcpy(data, &e->id, sizeof e->id);
	if (actual) *actual = type;
	if (got) *got = sizeof e->id;
	return 0;
}
API int32_t RegisterEventHotKey(uint32_t code, uint32_t modifiers, struct id id, void *target, uint32_t options, void **ref) {
	if (target != &the_target || !standin_keycode(code)) return INVALID;
	if (!x) {
		pthread_mutex_lock(&standin_lock);
		if (standin_x()) x = XOpenDisplay(DisplayString(standin_x()));
		pthread_mutex_unlock(&standin_lock);
		if (!x) return INVALID;
		if (standin_loop_watch) standin_loop_watch(ConnectionNumber(x), readable);
	}
	struct hotkey *k = calloc(1, sizeof *k);
	k->id = id, k->code = standin_keycode(code);
	k->state = (modifiers & SHIFT ? ShiftMask : 0) | (modifiers & CONTROL ? ControlMask : 0) | (modifiers & OPTION ? Mod1Mask : 0) | (modifiers & CMD ? Mod4Mask : 0);
	bool ours = false;
	for (struct hotkey *o = all; o; o = o->next) ours |= o->code == k->code && o->state == k->state;
	refused = false;
	int (*old)(Display *, XErrorEvent *) = XSetErrorHandler(on_error);
	if (!ours) grab(k, true);
	XSetErrorHandler(old);
	if (ours || (refused && options & 1)) {
		free(k);
		return EXISTS;
	}
	k->next = all, all = k, *ref = k;
	return 0;
}
API int32_t UnregisterEventHotKey(struct hotkey *k) {
	for (struct hotkey **p = &all; *p; p = &(*p)->next)
		if (*p == k) {
			*p = k->next;
			grab(k, false);
			free(k);
			return 0;
		}
	return INVALID;
}
