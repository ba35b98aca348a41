/* What the parts of the stand-in share. */
#ifndef STANDIN_H
#define STANDIN_H
#include <X11/Xlib.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#define API __attribute__((visibility("default")))

/* control.c: settings by name, a log of what was posted, the X display. */
struct display {
	uint32_t id;
	double x, y, w, h; /* bounds in points */
	double scale;      /* pixels a point */
	int px, py;        /* of its top left pixel on the X display */
};
struct settings {
	bool trusted;      /* trusted=0: Accessibility is withheld */
	bool post;         /* post=0: posting events is withheld */
	bool screen;       /* screen=0: Screen Recording is withheld */
	bool preflight;    /* preflight=0: macOS does not say that there is a grant for it */
	bool listen;       /* listen=0: Input Monitoring is withheld */
	char tap[16];      /* ok, deaf: a tap hears nothing, none: there is none to be had */
	char counters[16]; /* ok, none: no event is counted */
	bool counted;      /* the hardware's state counts posted events, too */
	bool graphic;      /* graphic=0: no login session */
	bool console;      /* console=0: another user's session is on the screen */
	bool locked, asleep;
	int secure;        /* pid of who reads the keyboard securely */
	bool deaf;         /* deaf=1: the suppression settings do not stick */
	char ax[16];       /* ok, hang: who does not answer Accessibility costs more than was set */
	char macos[16];    /* the version */
	bool reversed;     /* reversed=1: a positive wheel is down, and right */
	char source[128];  /* the input source's id */
	bool bundle;       /* bundle=1: the program runs from an application's bundle */
	bool notices;      /* notices=0: the person wants no notifications */
	char sck[64];      /* ok, error:CODE, never, late:MS, absent */
	char keychain[1024]; /* the file of the Keychain's items; empty: they end with the program */
	bool keylock;      /* keylock=1: the Keychain is locked */
	bool unpowered;    /* power=0: power management refuses assertions */
	struct display displays[8];
	int n;
};
extern struct settings standin;
extern pthread_mutex_t standin_lock; /* guards settings, the log and the X display */
Display *standin_x(void);            /* NULL where there is none; hold the lock */
void standin_note(const char *format, ...) __attribute__((format(printf, 1, 2)));
struct display *standin_display(uint32_t id);
struct display *standin_at(double x, double y); /* the nearest one */

/* foundation.c: objects with a kind and a count. */
enum kind { KIND_STRING = 1, KIND_NUMBER, KIND_BOOLEAN, KIND_DICTIONARY, KIND_DATA, KIND_ARRAY, KIND_SOURCE, KIND_EVENT, KIND_INPUT, KIND_MODE, KIND_IMAGE, KIND_CONTEXT, KIND_OTHER, KIND_LOOP, KIND_RUNLOOP_SOURCE, KIND_TAP, KIND_ELEMENT, KIND_AXVALUE };
struct object { int kind; int refs; };
API const void *CFRetain(const void *p);
API void CFRelease(const void *p);
void *standin_new(int kind, unsigned long size);
const void *standin_string(const char *s); /* a constant, kept for ever */
const char *standin_chars(const void *string);
API const void *CFStringCreateWithCString(const void *alloc, const char *s, uint32_t encoding);
API const void *CFDictionaryGetValue(const void *dict, const void *key);
API const void *CFDataCreate(const void *alloc, const unsigned char *bytes, long n);
API const void *CFDataGetBytePtr(const void *data);
API long CFDataGetLength(const void *data);
extern API const void *kCFBooleanTrue;
extern int kCFTypeDictionaryKeyCallBacks, kCFTypeDictionaryValueCallBacks;
API void *CFDictionaryCreateMutable(const void *alloc, long capacity, const void *keys, const void *values);
API void CFDictionarySetValue(void *dict, const void *key, const void *value);
void *standin_array(void); /* an empty one, and what is put at its end */
void standin_append(void *array, const void *value);
void *standin_windows(void); /* a list of windows, */
void *standin_double(double n);
int standin_pid(Window w); /* of the program that a window belongs to */
void standin_window(void *list, const char *owner, int pid, const char *name, int layer, double x, double y, double w, double h);

/* displays.c: the picture of a display. */
struct image { struct object o; unsigned long w, h; unsigned char *pixels; }; /* BGRX */
struct image *standin_grab(struct display *d, double x, double y, double w, double h, unsigned long pw, unsigned long ph);
#endif
