/* Displays (CGDirectDisplay.h) and pictures (CGImage.h, CGBitmapContext.h). The
 * pixels are those of the X display. CGDisplayPixelsWide is left out on purpose:
 * it gives points on a Retina display (trycua/cua#3326). */
#include "standin.h"
#include <X11/Xutil.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

typedef struct { double x, y; } CGPoint;
typedef struct { double w, h; } CGSize;
typedef struct { CGPoint o; CGSize s; } CGRect;
struct mode { struct object o; unsigned long w, h, pw, ph; };
struct context { struct object o; unsigned char *data; unsigned long w, h, row; };

API const void *kCGColorSpaceSRGB;
__attribute__((constructor)) static void strings(void) { kCGColorSpaceSRGB = standin_string("kCGColorSpaceSRGB"); }

API uint32_t CGMainDisplayID(void) {
	pthread_mutex_lock(&standin_lock);
	uint32_t id = standin.n ? standin.displays[0].id : 0;
	pthread_mutex_unlock(&standin_lock);
	return id;
}
/* In no order that means anything: the main one is last here. */
API int32_t CGGetActiveDisplayList(uint32_t most, uint32_t *ids, uint32_t *n) {
	pthread_mutex_lock(&standin_lock);
	*n = 0;
	for (int i = standin.n - 1; i >= 0 && *n < most; i--) ids[(*n)++] = standin.displays[i].id;
	pthread_mutex_unlock(&standin_lock);
	return 0;
}
API CGRect CGDisplayBounds(uint32_t id) {
	pthread_mutex_lock(&standin_lock);
	struct display *d = standin_display(id);
	CGRect r = {{0, 0}, {0, 0}}; /* CGRectZero for a display that is not there */
	if (d) r = (CGRect){{d->x, d->y}, {d->w, d->h}};
	pthread_mutex_unlock(&standin_lock);
	return r;
}
API void *CGDisplayCopyDisplayMode(uint32_t id) {
	struct mode *m = NULL;
	pthread_mutex_lock(&standin_lock);
	struct display *d = standin_display(id);
	if (d) {
		m = standin_new(KIND_MODE, sizeof *m);
		m->w = d->w, m->h = d->h, m->pw = lround(d->w * d->scale), m->ph = lround(d->h * d->scale);
	}
	pthread_mutex_unlock(&standin_lock);
	return m;
}
API unsigned long CGDisplayModeGetWidth(struct mode *m) { return m->w; }
API unsigned long CGDisplayModeGetPixelWidth(struct mode *m) { return m->pw; }
API uint32_t CGDisplayMirrorsDisplay(uint32_t id) { return 0; }
API int32_t CGDisplayIsAsleep(uint32_t id) {
	pthread_mutex_lock(&standin_lock);
	int32_t asleep = standin.asleep;
	pthread_mutex_unlock(&standin_lock);
	return asleep;
}

/* A part of a display, given in points from its corner, as pw×ph pixels. A
 * locked or sleeping display is black (trycua/cua#1743). */
struct image *standin_grab(struct display *d, double x, double y, double w, double h, unsigned long pw, unsigned long ph) {
	struct image *m = standin_new(KIND_IMAGE, sizeof *m);
	m->w = pw, m->h = ph, m->pixels = calloc(pw * ph, 4);
	if (!standin_x() || standin.locked || standin.asleep) return m;
	int sx = d->px + lround(x * d->scale), sy = d->py + lround(y * d->scale);
	unsigned sw = lround(w * d->scale), sh = lround(h * d->scale);
	XImage *i = XGetImage(standin_x(), DefaultRootWindow(standin_x()), sx, sy, sw, sh, AllPlanes, ZPixmap);
	if (!i) return m;
	for (unsigned long r = 0; r < ph; r++)
		for (unsigned long c = 0; c < pw; c++)
			memcpy(m->pixels + (r * pw + c) * 4, i->data + (r * sh / ph) * i->bytes_per_line + (c * sw / pw) * 4, 4);
	XDestroyImage(i);
	return m;
}
API unsigned long CGImageGetWidth(struct image *m) { return m->w; }
API unsigned long CGImageGetHeight(struct image *m) { return m->h; }
API void *CGColorSpaceCreateWithName(const void *name) { return name ? standin_new(KIND_OTHER, sizeof(struct object)) : NULL; }
/* CGBitmapContext.h: NULL for parameters that do not go together. */
API void *CGBitmapContextCreate(void *data, unsigned long w, unsigned long h, unsigned long bits, unsigned long row, void *space, uint32_t info) {
	if (!w || !h || bits != 8 || row < w * 4 || !space || info != (8192 | 6)) return NULL;
	struct context *c = standin_new(KIND_CONTEXT, sizeof *c);
	c->data = data, c->w = w, c->h = h, c->row = row;
	return c;
}
API void CGContextDrawImage(struct context *c, CGRect r, struct image *m) {
	for (unsigned long y = 0; y < c->h && y < r.s.h; y++)
		for (unsigned long x = 0; x < c->w && x < r.s.w; x++)
			memcpy(c->data + y * c->row + x * 4, m->pixels + ((unsigned long)(y * m->h / r.s.h) * m->w + (unsigned long)(x * m->w / r.s.w)) * 4, 4);
}

/* The windows of the X display that name a program, as the window server lists
 * them: what overrides the window manager is a menu, above the applications. */
static void window(void *list, Window w) {
	Display *x = standin_x();
	XClassHint hint;
	if (XGetClassHint(x, w, &hint)) {
		XWindowAttributes a;
		Window child;
		int rx, ry;
		char *title = NULL;
		XGetWindowAttributes(x, w, &a);
		XTranslateCoordinates(x, w, DefaultRootWindow(x), 0, 0, &rx, &ry, &child);
		XFetchName(x, w, &title);
		struct display *d = NULL;
		for (int i = 0; i < standin.n && !d; i++) {
			struct display *e = &standin.displays[i];
			if (rx >= e->px && ry >= e->py && rx < e->px + e->w * e->scale && ry < e->py + e->h * e->scale) d = e;
		}
		if (a.map_state == IsViewable && d)
			standin_window(list, hint.res_class, standin_pid(w), standin.screen ? title : NULL, a.override_redirect ? 101 : 0,
				d->x + (rx - d->px) / d->scale, d->y + (ry - d->py) / d->scale, a.width / d->scale, a.height / d->scale);
		if (title) XFree(title);
		XFree(hint.res_name), XFree(hint.res_class);
		return;
	}
	Window root, parent, *children = NULL;
	unsigned n = 0;
	if (!XQueryTree(x, w, &root, &parent, &children, &n)) return;
	while (n > 0) window(list, children[--n]); /* X lists from back to front */
	if (children) XFree(children);
}
API void *CGWindowListCopyWindowInfo(uint32_t options, uint32_t relative) {
	void *list = standin_windows();
	pthread_mutex_lock(&standin_lock);
	bool graphic = standin.graphic;
	if (standin_x() && graphic) window(list, DefaultRootWindow(standin_x()));
	pthread_mutex_unlock(&standin_lock);
	return graphic ? list : NULL; /* NULL outside of a session */
}
