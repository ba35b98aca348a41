/* An event of Core Graphics, as events.c makes it and taps.c hands it on. */
#ifndef EVENTS_H
#define EVENTS_H
#include "standin.h"

typedef struct { double x, y; } CGPoint;
struct event {
	struct object o;
	uint32_t type, button;
	CGPoint p;
	uint16_t key;
	uint64_t flags;
	int32_t wheel[2];
	int n;
	uint16_t units[64];
	int64_t fields[192];
	bool suppresses; /* of its source: the person's input dies with it */
};
enum { LEFT_DOWN = 1, LEFT_UP, RIGHT_DOWN, RIGHT_UP, MOVED, LEFT_DRAGGED, RIGHT_DRAGGED, KEY_DOWN = 10, KEY_UP, FLAGS_CHANGED, WHEEL = 22, OTHER_DOWN = 25, OTHER_UP, OTHER_DRAGGED };
CGPoint standin_pointer(void); /* hold standin_lock */
bool standin_held(void);       /* a posted button is down; hold standin_lock */

/* taps.c: whoever listens hears of an event; hold standin_lock. */
void standin_heard(const struct event *e, bool hardware);
void standin_watch(const char *display); /* the person's devices; NULL: no more */
void standin_tap_off(uint32_t why);      /* macOS turns every tap off */
#endif
