/* Keyboard layouts (HIToolbox's Text Input Sources and UCKeyTranslate) and
 * secure input. The layout in force is that of the X display, so that what is
 * looked up here is what arrives there; the ASCII-capable one is the US layout,
 * after which Events.h names the key codes. */
#include "standin.h"
#include "keyboard.h"
#include <X11/XKBlib.h>
#include <X11/keysym.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Virtual key codes (Events.h) to the X keycodes of the same places (evdev's,
 * which are those of Linux plus 8). */
static const unsigned char places[128] = {
	[0] = 38, [1] = 39, [2] = 40, [3] = 41, [4] = 43, [5] = 42, [6] = 52, [7] = 53, [8] = 54, [9] = 55, [10] = 94, [11] = 56,
	[12] = 24, [13] = 25, [14] = 26, [15] = 27, [16] = 29, [17] = 28, [18] = 10, [19] = 11, [20] = 12, [21] = 13, [22] = 15, [23] = 14,
	[24] = 21, [25] = 18, [26] = 16, [27] = 20, [28] = 17, [29] = 19, [30] = 35, [31] = 32, [32] = 30, [33] = 34, [34] = 31, [35] = 33,
	[36] = 36, [37] = 46, [38] = 44, [39] = 48, [40] = 45, [41] = 47, [42] = 51, [43] = 59, [44] = 61, [45] = 57, [46] = 58, [47] = 60,
	[48] = 23, [49] = 65, [50] = 49, [51] = 22, [53] = 9, [55] = 133, [56] = 50, [57] = 66, [58] = 64, [59] = 37,
	[65] = 91, [67] = 63, [69] = 86, [71] = 77, [72] = 123, [73] = 122, [74] = 121, [75] = 106, [76] = 104, [78] = 82, [81] = 125,
	[82] = 90, [83] = 87, [84] = 88, [85] = 89, [86] = 83, [87] = 84, [88] = 85, [89] = 79, [91] = 80, [92] = 81,
	[96] = 71, [97] = 72, [98] = 73, [99] = 69, [100] = 74, [101] = 75, [103] = 95, [105] = 191, [107] = 192, [109] = 76, [111] = 96, [113] = 193,
	[114] = 118, [115] = 110, [116] = 112, [117] = 119, [118] = 70, [119] = 115, [120] = 68, [121] = 117, [122] = 67,
	[123] = 113, [124] = 114, [125] = 116, [126] = 111,
};
int standin_keycode(int code) { return code >= 0 && code < 128 ? places[code] : 0; }
int standin_code(int keycode) {
	for (int i = 0; i < 128; i++)
		if (places[i] && places[i] == keycode) return i;
	return 127;
}

static const char us[][3] = { /* by virtual key code */
	"aA", "sS", "dD", "fF", "hH", "gG", "zZ", "xX", "cC", "vV", "", "bB", "qQ", "wW", "eE", "rR", "yY", "tT", "1!", "2@", "3#", "4$", "6^", "5%",
	"=+", "9(", "7&", "-_", "8*", "0)", "]}", "oO", "uU", "[{", "iI", "pP", "", "lL", "jJ", "'\"", "kK", ";:", "\\|", ",<", "/?", "nN", "mM", ".>", "", "  ", "`~",
};

struct input { struct object o; char id[128]; };
API const void *kTISPropertyUnicodeKeyLayoutData, *kTISPropertyInputSourceID, *kTISPropertyInputSourceType, *kTISTypeKeyboardLayout;
__attribute__((constructor)) static void strings(void) {
	kTISPropertyUnicodeKeyLayoutData = standin_string("TISPropertyUnicodeKeyLayoutData");
	kTISPropertyInputSourceID = standin_string("TISPropertyInputSourceID");
	kTISPropertyInputSourceType = standin_string("TISPropertyInputSourceType");
	kTISTypeKeyboardLayout = standin_string("TISTypeKeyboardLayout");
}

/* Recent versions of macOS end a process that asks elsewhere (an assertion of
 * dispatch in TSMGetInputSourceProperty and the like). */
static void main_thread_only(const char *what) {
	if (!standin_on_main()) fprintf(stderr, "standin: %s was called outside of the main thread\n", what), abort();
}
static bool is_method(const char *id) { return strstr(id, ".inputmethod.") != NULL; }
static struct input *input(const char *id) {
	struct input *s = standin_new(KIND_INPUT, sizeof *s);
	snprintf(s->id, sizeof s->id, "%s", id);
	return s;
}
API void *TISCopyCurrentKeyboardInputSource(void) {
	main_thread_only(__func__);
	pthread_mutex_lock(&standin_lock);
	struct input *s = input(standin.source);
	pthread_mutex_unlock(&standin_lock);
	return s;
}
/* TextInputSources.h: the layout that an input method uses, where one is on. */
API void *TISCopyCurrentKeyboardLayoutInputSource(void) {
	struct input *s = TISCopyCurrentKeyboardInputSource();
	if (is_method(s->id)) strcpy(s->id, "com.apple.keylayout.US");
	return s;
}
API void *TISCopyCurrentASCIICapableKeyboardLayoutInputSource(void) {
	main_thread_only(__func__);
	return input("com.apple.keylayout.US");
}
void *standin_data(const void *bytes, long n);
API const void *TISGetInputSourceProperty(struct input *s, const void *key) {
	main_thread_only(__func__);
	if (key == kTISPropertyInputSourceID) return standin_string(s->id);
	if (key == kTISPropertyInputSourceType) return is_method(s->id) ? standin_string("TISTypeKeyboardInputMode") : kTISTypeKeyboardLayout;
	if (key != kTISPropertyUnicodeKeyLayoutData || is_method(s->id) || strstr(s->id, ".old.")) return NULL; /* a 'KCHR' layout has none */
	return standin_data(standin_chars(standin_string(s->id)), strlen(s->id) + 1);
}
API int32_t TISSelectInputSource(struct input *s) {
	main_thread_only(__func__);
	pthread_mutex_lock(&standin_lock);
	strcpy(standin.source, s->id);
	standin_note("select %s", s->id);
	pthread_mutex_unlock(&standin_lock);
	return 0;
}
API uint8_t LMGetKbdType(void) { return 40; }

/* UnicodeUtilities.h: modifiers as (EventRecord.modifiers >> 8) & 0xFF, so 1 is
 * Command, 2 Shift, 8 Option; a dead key yields nothing and a state, or its
 * character where the options say so. */
API int32_t UCKeyTranslate(const char *layout, uint16_t code, uint16_t action, uint32_t mods, uint32_t type, uint32_t options, uint32_t *dead,
	unsigned long most, unsigned long *n, uint16_t *out) {
	*n = 0;
	int shift = mods & 2 ? 1 : 0, level = shift + (mods & 8 ? 2 : 0);
	uint32_t c = 0;
	bool is_dead = false;
	if (!strcmp(layout, "com.apple.keylayout.US") || (mods & 1 && strstr(layout, "QWERTYCMD"))) {
		if (level < 2 && code < sizeof us / sizeof *us) c = (unsigned char)us[code][shift];
	} else {
		pthread_mutex_lock(&standin_lock);
		KeySym k = standin_x() && standin_keycode(code) ? XkbKeycodeToKeysym(standin_x(), standin_keycode(code), 0, level) : 0;
		pthread_mutex_unlock(&standin_lock);
		is_dead = k >= XK_dead_grave && k <= XK_dead_greek;
		if (is_dead) c = k == XK_dead_circumflex ? '^' : k == XK_dead_diaeresis ? 0xa8 : k == XK_dead_acute ? 0xb4 : k == XK_dead_tilde ? '~' : '`';
		else if ((k >= 0x20 && k <= 0x7e) || (k >= 0xa0 && k <= 0xff)) c = k;
		else if ((k & 0xff000000) == 0x01000000) c = k & 0xffffff;
	}
	if (is_dead && !(options & 1)) {
		*dead = 1;
		return 0;
	}
	if (c && c < 0x10000 && most > 0) out[0] = c, *n = 1;
	return 0;
}

/* CarbonEventsCore.h. */
API unsigned char IsSecureEventInputEnabled(void) {
	pthread_mutex_lock(&standin_lock);
	bool on = standin.secure != 0;
	pthread_mutex_unlock(&standin_lock);
	return on;
}
