/* AppKit is GNUstep's own. Here is only what it lacks.
 *
 * - The main queue is served by NSApplication's loop, in all common modes
 *   (dispatch_get_main_queue(3); NSRunLoop.h: NSRunLoopCommonModes).
 * - Hot keys come through NSApplication's loop (CarbonEvents.h).
 * - GNUstep has no status bar on X: here the item is a button in a small window
 *   at the top of the screen, which pops its menu up when it is clicked
 *   (NSStatusItem.h: "menu: … shown when the status item is clicked").
 * - Setters that a desktop without Apple's Dock and menu bar has no use for do
 *   nothing: setActivationPolicy:, setTemplate:, setCollectionBehavior:.
 */
#import <AppKit/AppKit.h>
#import <Foundation/NSRunLoop.h>
#include "standin.h"
#include <stdlib.h>

extern char **environ;
void GSInitializeProcess(int argc, char **argv, char **environment);
int standin_queue_fd(void);
void standin_drain(void);

extern void (*standin_loop_watch)(int fd, void (*readable)(void));

/* Calls a function when a descriptor can be read. */
@interface StandinWatch : NSObject {
@public
	void (*readable)(void);
}
@end
static void watch(int fd, void (*readable)(void)) {
	StandinWatch *w = [StandinWatch new];
	w->readable = readable;
	for (NSString *mode in [NSArray arrayWithObjects:NSDefaultRunLoopMode, NSModalPanelRunLoopMode, NSEventTrackingRunLoopMode, nil])
		[[NSRunLoop currentRunLoop] addEvent:(void *)(intptr_t)fd type:ET_RDESC watcher:(id)w forMode:mode];
}
@implementation StandinWatch
- (void)receivedEvent:(void *)data type:(RunLoopEventType)type extra:(void *)extra forMode:(NSString *)mode { readable(); }
+ (void)launch:(NSNotification *)n {
	watch(standin_queue_fd(), standin_drain);
	standin_loop_watch = watch;
}
+ (void)load {
	/* GNUstep would take our arguments for files to open, and ask what to do about
	 * those that are none. */
	char *arguments[] = {"drawbridge", NULL};
	GSInitializeProcess(1, arguments, environ);
	NSAutoreleasePool *pool = [NSAutoreleasePool new];
	/* The X display is that of the desktop. */
	pthread_mutex_lock(&standin_lock);
	if (!getenv("DISPLAY") && standin_x()) setenv("DISPLAY", DisplayString(standin_x()), 1);
	pthread_mutex_unlock(&standin_lock);
	/* The icon that GNUstep gives each application would lie about. */
	[[NSUserDefaults standardUserDefaults] registerDefaults:[NSDictionary dictionaryWithObjectsAndKeys:
		@"YES", @"GSSuppressAppIcon", @"NO", @"GSX11HandlesWindowDecorations", @"500", @"GSDoubleClickTime", @"NSMacintoshInterfaceStyle", @"NSScrollViewInterfaceStyle",
		@"NSMacintoshInterfaceStyle", @"NSMenuInterfaceStyle", nil]];
	[[NSNotificationCenter defaultCenter] addObserver:self selector:@selector(launch:) name:NSApplicationWillFinishLaunchingNotification object:nil];
	[pool drain];
}
@end

/* NSEvent.h: in seconds; GNUstep counts clicks by it, and does not tell it. */
@implementation NSEvent (Standin)
+ (NSTimeInterval)doubleClickInterval { return [[NSUserDefaults standardUserDefaults] integerForKey:@"GSDoubleClickTime"] / 1000.0; }
@end

@implementation NSApplication (Standin)
- (BOOL)setActivationPolicy:(NSInteger)policy {
	standin_note("activation policy %ld", (long)policy);
	return YES;
}
@end
@implementation NSImage (Standin)
- (void)setTemplate:(BOOL)yes {}
@end

/* GNUstep binds Escape to complete:, macOS to cancelOperation:
 * (StandardKeyBinding.dict), which goes up the chain of responders. */
@implementation NSTextView (Standin)
- (void)complete:(id)sender { [[self nextResponder] tryToPerform:@selector(cancelOperation:) with:sender]; }
@end

@interface StandinStatusButton : NSButton {
@public
	NSMenu *popup;
}
@end
@implementation StandinStatusButton
- (BOOL)acceptsFirstMouse:(NSEvent *)e { return YES; }
- (void)mouseDown:(NSEvent *)e {
	if (popup) [NSMenu popUpContextMenu:popup withEvent:e forView:self];
}
@end

@interface StandinStatusItem : NSStatusItem {
	NSWindow *window;
	StandinStatusButton *button;
	BOOL visible;
}
@end
@implementation StandinStatusItem
- (id)initWithLength:(CGFloat)length {
	NSRect screen = [[NSScreen mainScreen] frame];
	NSRect frame = NSMakeRect(NSMidX(screen), NSMaxY(screen) - 24, 32, 24);
	window = [[NSWindow alloc] initWithContentRect:frame styleMask:NSBorderlessWindowMask backing:NSBackingStoreBuffered defer:NO];
	[window setLevel:NSStatusWindowLevel];
	button = [[StandinStatusButton alloc] initWithFrame:NSMakeRect(0, 0, 32, 24)];
	[button setBordered:NO];
	[button setImagePosition:NSImageOnly];
	[[window contentView] addSubview:button];
	[window orderFrontRegardless];
	visible = YES;
	return self;
}
- (NSButton *)button { return button; }
- (void)setMenu:(NSMenu *)m { button->popup = m; }
- (void)setVisible:(BOOL)yes {
	visible = yes;
	if (yes) [window orderFrontRegardless];
	else [window orderOut:nil];
}
- (BOOL)isVisible { return visible; }
- (void)remove { [window orderOut:nil]; }
@end
@implementation NSStatusBar (Standin)
+ (NSStatusBar *)systemStatusBar {
	static NSStatusBar *bar;
	if (!bar) bar = [self new];
	return bar;
}
- (NSStatusItem *)statusItemWithLength:(CGFloat)length { return [[[StandinStatusItem alloc] initWithLength:length] autorelease]; }
- (void)removeStatusItem:(NSStatusItem *)item { [(StandinStatusItem *)item remove]; }
@end
