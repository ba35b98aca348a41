#ifndef KEYBOARD_H
#define KEYBOARD_H
#include <stdbool.h>
int standin_keycode(int code); /* X's, for a virtual key code; 0 for none */
int standin_code(int keycode); /* the other way round; 127, which is no key, for none */
bool standin_on_main(void);
#endif
