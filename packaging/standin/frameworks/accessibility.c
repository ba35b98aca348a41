/* Accessibility (AXUIElement.h, AXError.h, AXAttributeConstants.h): what an
 * application tells of its windows and controls. The applications are the windows
 * of the X display that name a program. What such a program has to tell stands in
 * properties of its window:
 *
 *   _AX_ROLE, _AX_SUBROLE   strings: of the one control that fills the window
 *   _AX_VALUE               its text (kAXValueAttribute)
 *   _AX_SCROLL              how far it is scrolled, in thousandths, as its vertical
 *                           scroll bar tells it (kAXVerticalScrollBarAttribute)
 *   _AX_HANGS               it answers nobody
 *
 * Without the grant every question is answered kAXErrorAPIDisabled. One who does
 * not answer costs the patience that was set, six seconds at first, then
 * kAXErrorCannotComplete (AXUIElementSetMessagingTimeout); the setting ax=hang lets
 * it cost far more. */
#include "events.h"
#include <X11/Xatom.h>
#include <X11/Xutil.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { NO_VALUE = -25212, UNSUPPORTED = -25205, INVALID = -25202, CANNOT = -25204, DISABLED = -25211 };
enum part { SYSTEM, APPLICATION, CONTROL, SCROLLBAR };
struct element { struct object o; enum part part; Window w; int pid; };
struct value { struct object o; int type; double v[2]; };
static float patience = 6;

static struct element *element(enum part part, Window w, int pid) {
	struct element *e = standin_new(KIND_ELEMENT, sizeof *e);
	e->part = part, e->w = w, e->pid = pid;
	return e;
}
static char *property(Window w, const char *name) {
	Display *x = standin_x();
	Atom type;
	int format;
	unsigned long n, rest;
	unsigned char *data = NULL;
	XGetWindowProperty(x, w, XInternAtom(x, name, False), 0, 1 << 16, False, AnyPropertyType, &type, &format, &n, &rest, &data);
	char *s = data && format == 8 ? strndup((char *)data, n) : NULL;
	if (data) XFree(data);
	return s;
}
int standin_pid(Window w) {
	Display *x = standin_x();
	Atom type;
	int format, pid = w & 0x7fffffff; /* of a program that does not tell */
	unsigned long n, rest;
	unsigned char *data = NULL;
	XGetWindowProperty(x, w, XInternAtom(x, "_NET_WM_PID", False), 0, 1, False, XA_CARDINAL, &type, &format, &n, &rest, &data);
	if (data && n == 1 && format == 32) pid = *(long *)data;
	if (data) XFree(data);
	/* GNUstep's windows, which are ours, do not tell theirs. */
	XClassHint hint;
	if (XGetClassHint(x, w, &hint)) {
		if (!strcmp(hint.res_class, "GNUstep")) pid = getpid();
		XFree(hint.res_name), XFree(hint.res_class);
	}
	return pid;
}
static bool named(Window w) {
	XClassHint hint;
	if (!XGetClassHint(standin_x(), w, &hint)) return false;
	XFree(hint.res_name), XFree(hint.res_class);
	return true;
}
/* The program's window that w is a part of. */
static Window above(Window w) {
	Window root = DefaultRootWindow(standin_x()), parent, *children;
	unsigned n;
	while (w > PointerRoot && w != root && !named(w)) {
		if (!XQueryTree(standin_x(), w, &root, &parent, &children, &n)) return 0;
		if (children) XFree(children);
		w = parent;
	}
	return w > PointerRoot && w != root ? w : 0;
}
static Window within(Window w, int pid) {
	Window root, parent, *children, found = 0;
	unsigned n;
	if (named(w)) return standin_pid(w) == pid ? w : 0;
	if (!XQueryTree(standin_x(), w, &root, &parent, &children, &n)) return 0;
	while (n > 0 && !found) found = within(children[--n], pid);
	if (children) XFree(children);
	return found;
}
static Window focused(void) {
	Window w;
	int revert;
	XGetInputFocus(standin_x(), &w, &revert);
	return above(w);
}
static bool hangs(Window w) {
	char *s = w ? property(w, "_AX_HANGS") : NULL;
	free(s);
	return s != NULL;
}

API unsigned long AXUIElementGetTypeID(void) { return KIND_ELEMENT; }
API unsigned long AXValueGetTypeID(void) { return KIND_AXVALUE; }
API void *AXUIElementCreateSystemWide(void) { return element(SYSTEM, 0, 0); }
API void *AXUIElementCreateApplication(int pid) { return element(APPLICATION, 0, pid); }
API int AXUIElementSetMessagingTimeout(struct element *e, float seconds) {
	if (e->part == SYSTEM) patience = seconds > 0 ? seconds : 6;
	return 0;
}
API int AXUIElementGetPid(struct element *e, int *pid) {
	if (e->part == SYSTEM) return INVALID;
	*pid = e->pid;
	return 0;
}
/* Waits where the application would; call without the lock. */
static int silence(void) {
	pthread_mutex_lock(&standin_lock);
	bool hard = !strcmp(standin.ax, "hang");
	pthread_mutex_unlock(&standin_lock);
	usleep(hard ? 2000000 : patience * 1e6);
	return CANNOT;
}
API int AXUIElementCopyElementAtPosition(struct element *e, float px, float py, void **found) {
	int status = NO_VALUE;
	*found = NULL;
	pthread_mutex_lock(&standin_lock);
	Display *x = standin_x();
	struct display *d = standin_at(px, py);
	bool silent = false;
	if (!standin.trusted) status = DISABLED;
	else if (x && d) {
		int at_x = d->px + (px - d->x) * d->scale, at_y = d->py + (py - d->y) * d->scale, rx, ry;
		Window w = DefaultRootWindow(x), child;
		while (XTranslateCoordinates(x, DefaultRootWindow(x), w, at_x, at_y, &rx, &ry, &child) && child && !named(w)) w = child;
		if ((w = named(w) ? w : 0)) {
			silent = hangs(w);
			if (!silent) *found = element(CONTROL, w, standin_pid(w)), status = 0;
		}
	}
	pthread_mutex_unlock(&standin_lock);
	return silent ? silence() : status;
}

static void *point(int type, double a, double b) {
	struct value *v = standin_new(KIND_AXVALUE, sizeof *v);
	v->type = type, v->v[0] = a, v->v[1] = b;
	return v;
}
API bool AXValueGetValue(const struct value *v, uint32_t type, double *into) {
	if (v->type != (int)type) return false;
	into[0] = v->v[0], into[1] = v->v[1];
	return true;
}
API const void *CFStringCreateWithCString(const void *alloc, const char *s, uint32_t encoding);
static int text(Window w, const char *name, const char *none, const void **value) {
	char *s = property(w, name);
	if (s || none) *value = CFStringCreateWithCString(NULL, s ? s : none, 0);
	free(s);
	return *value ? 0 : UNSUPPORTED;
}
static int copy(struct element *e, const char *a, const void **value) {
	Display *x = standin_x();
	if (e->part == SYSTEM) {
		Window w = focused();
		if (!w) return NO_VALUE;
		if (!strcmp(a, "AXFocusedApplication")) *value = element(APPLICATION, w, standin_pid(w));
		else if (!strcmp(a, "AXFocusedUIElement")) *value = element(CONTROL, w, standin_pid(w));
		else return UNSUPPORTED;
		return 0;
	}
	Window w = e->w ? e->w : within(DefaultRootWindow(x), e->pid);
	if (!w) return INVALID;
	if (e->part == APPLICATION) {
		if (!strcmp(a, "AXFocusedUIElement") || !strcmp(a, "AXFocusedWindow")) *value = element(CONTROL, w, e->pid);
		else if (!strcmp(a, "AXRole")) *value = CFStringCreateWithCString(NULL, "AXApplication", 0);
		else return UNSUPPORTED;
		return 0;
	}
	if (e->part == SCROLLBAR) {
		if (strcmp(a, "AXValue")) return UNSUPPORTED;
		char *s = property(w, "_AX_SCROLL");
		*value = standin_double(s ? atof(s) / 1000 : 0);
		free(s);
		return 0;
	}
	if (!strcmp(a, "AXRole")) return text(w, "_AX_ROLE", "AXWindow", value);
	if (!strcmp(a, "AXSubrole")) return text(w, "_AX_SUBROLE", NULL, value);
	if (!strcmp(a, "AXValue")) return text(w, "_AX_VALUE", NULL, value);
	if (!strcmp(a, "AXTitle")) return text(w, "WM_NAME", "", value);
	if (!strcmp(a, "AXVerticalScrollBar")) {
		char *s = property(w, "_AX_SCROLL");
		if (s) *value = element(SCROLLBAR, w, e->pid);
		free(s);
		return *value ? 0 : NO_VALUE;
	}
	if (!strcmp(a, "AXParent")) {
		*value = element(CONTROL, w, e->pid); /* the scroll area around it is no smaller */
		return 0;
	}
	if (!strcmp(a, "AXPosition") || !strcmp(a, "AXSize")) {
		XWindowAttributes at;
		Window child;
		int rx, ry;
		XGetWindowAttributes(x, w, &at);
		XTranslateCoordinates(x, w, DefaultRootWindow(x), 0, 0, &rx, &ry, &child);
		for (int i = 0; i < standin.n; i++) {
			struct display *d = &standin.displays[i];
			if (rx < d->px || ry < d->py || rx >= d->px + d->w * d->scale || ry >= d->py + d->h * d->scale) continue;
			*value = a[2] == 'P' ? point(1, d->x + (rx - d->px) / d->scale, d->y + (ry - d->py) / d->scale) : point(2, at.width / d->scale, at.height / d->scale);
			return 0;
		}
		return NO_VALUE;
	}
	return UNSUPPORTED;
}
API int AXUIElementCopyAttributeValue(struct element *e, const void *attribute, const void **value) {
	int status = DISABLED;
	*value = NULL;
	pthread_mutex_lock(&standin_lock);
	bool silent = standin_x() && standin.trusted && e->part != SYSTEM && hangs(e->w);
	if (standin_x() && standin.trusted && !silent) status = copy(e, standin_chars(attribute), value);
	pthread_mutex_unlock(&standin_lock);
	return silent ? silence() : status;
}
