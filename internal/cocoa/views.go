//go:build darwin || standin

package cocoa

import (
	"image"
	"sync"
	"unsafe"

	"github.com/ebitengine/purego/objc"

	"drawbridge/internal/quartz"
)

// Of NSView.h, NSButtonCell.h, NSCell.h, NSParagraphStyle.h and NSImageCell.h.
const (
	NSViewMinXMargin    uint = 1
	NSViewWidthSizable  uint = 2
	NSViewHeightSizable uint = 16
	NSViewMinYMargin    uint = 8
	NSViewMaxYMargin    uint = 32

	NSBezelStyleRounded                uint = 1
	NSBezelBorder                      uint = 2
	NSLineBreakByTruncatingTail        uint = 4
	NSImageScaleProportionallyUpOrDown uint = 3
	NSButtonTypeMomentaryPushIn        uint = 7
)

// What follows makes views whose owner is their superview: they are released by
// it. All of it is for the main thread.

// String makes an NSString that the pool releases.
func String(s string) objc.ID { return Class("NSString").Send(Sel("stringWithUTF8String:"), s) }

// Rect is a rectangle, its origin at the bottom left as AppKit has it.
func Rect(x, y, w, h float64) quartz.CGRect {
	return quartz.CGRect{Origin: quartz.CGPoint{X: x, Y: y}, Size: quartz.CGSize{Width: w, Height: h}}
}

func view(class string, in objc.ID, frame quartz.CGRect, sticks uint) objc.ID {
	v := Class(class).Send(Sel("alloc")).Send(Sel("initWithFrame:"), frame)
	v.Send(Sel("setAutoresizingMask:"), sticks)
	in.Send(Sel("addSubview:"), v)
	v.Send(Sel("release"))
	return v
}

// Font is how a text looks.
type Font uint8

// The fonts.
const (
	Plain Font = iota
	Bold
	Small
	Fixed
)

const (
	normalSize = 13
	smallSize  = 11
	endless    = 1e7 // AppKit's own limit of a view's size
)

func (f Font) id() objc.ID {
	c := Class("NSFont")
	switch f {
	case Bold:
		return c.Send(Sel("boldSystemFontOfSize:"), float64(normalSize))
	case Small:
		return c.Send(Sel("systemFontOfSize:"), float64(smallSize))
	case Fixed:
		return c.Send(Sel("userFixedPitchFontOfSize:"), float64(smallSize))
	}
	return c.Send(Sel("systemFontOfSize:"), float64(normalSize))
}

// Label puts text into a view.
func Label(in objc.ID, text string, font Font, frame quartz.CGRect, sticks uint, wraps bool) objc.ID {
	l := view("NSTextField", in, frame, sticks)
	l.Send(Sel("setEditable:"), false)
	l.Send(Sel("setBezeled:"), false)
	l.Send(Sel("setDrawsBackground:"), false)
	l.Send(Sel("setFont:"), font.id())
	cell := l.Send(Sel("cell"))
	cell.Send(Sel("setWraps:"), wraps)
	if !wraps {
		cell.Send(Sel("setLineBreakMode:"), NSLineBreakByTruncatingTail)
	}
	SetText(l, text)
	return l
}

// SetText changes the text of a label or field.
func SetText(field objc.ID, text string) { field.Send(Sel("setStringValue:"), String(text)) }

// Field puts a line in which the person can write into a view.
func Field(in objc.ID, hint string, frame quartz.CGRect, sticks uint) objc.ID {
	f := view("NSTextField", in, frame, sticks)
	f.Send(Sel("setFont:"), Plain.id())
	f.Send(Sel("cell")).Send(Sel("setPlaceholderString:"), String(hint))
	return f
}

// Written is what stands in a field.
func Written(field objc.ID) string { return Text(field.Send(Sel("stringValue"))) }

// buttonClass is a button that takes the first click into a window that does not
// have the keyboard, as a panel of ours never has.
var buttonClass = sync.OnceValue(func() string {
	const name = "DrawbridgeButton"
	define(name, "NSButton", objc.MethodDef{
		Cmd: Sel("acceptsFirstMouse:"),
		Fn:  func(objc.ID, objc.SEL, objc.ID) bool { return true },
	})
	return name
})

// Button puts a button into a view.
func Button(in objc.ID, title string, frame quartz.CGRect, sticks uint, pressed func()) objc.ID {
	b := view(buttonClass(), in, frame, sticks)
	b.Send(Sel("setButtonType:"), NSButtonTypeMomentaryPushIn)
	b.Send(Sel("setBezelStyle:"), NSBezelStyleRounded)
	b.Send(Sel("setFont:"), Plain.id())
	b.Send(Sel("setTitle:"), String(title))
	OnAction(b, pressed)
	return b
}

// Scrolled puts text that can be scrolled, selected and not changed into a view.
func Scrolled(in objc.ID, text string, frame quartz.CGRect, sticks uint) objc.ID {
	s := view("NSScrollView", in, frame, sticks)
	s.Send(Sel("setHasVerticalScroller:"), true)
	s.Send(Sel("setBorderType:"), NSBezelBorder)
	size := objc.Send[quartz.CGSize](s, Sel("contentSize"))
	t := Class("NSTextView").Send(Sel("alloc")).Send(Sel("initWithFrame:"), Rect(0, 0, size.Width, size.Height))
	t.Send(Sel("setEditable:"), false)
	t.Send(Sel("setRichText:"), false)
	// As Apple's "Putting an NSTextView Object in an NSScrollView" has it.
	t.Send(Sel("setMinSize:"), quartz.CGSize{Height: size.Height})
	t.Send(Sel("setMaxSize:"), quartz.CGSize{Width: endless, Height: endless})
	t.Send(Sel("setVerticallyResizable:"), true)
	t.Send(Sel("setHorizontallyResizable:"), false)
	t.Send(Sel("textContainer")).Send(Sel("setWidthTracksTextView:"), true)
	t.Send(Sel("setAutoresizingMask:"), NSViewWidthSizable)
	t.Send(Sel("setFont:"), Fixed.id())
	t.Send(Sel("setString:"), String(text))
	// Black would not be seen in the dark.
	t.Send(Sel("setTextColor:"), Class("NSColor").Send(Sel("textColor")))
	s.Send(Sel("setDocumentView:"), t)
	t.Send(Sel("release"))
	return s
}

// AtEnd tells whether the end of what a view from [Scrolled] holds is in view.
func AtEnd(scroller objc.ID) bool {
	text := scroller.Send(Sel("documentView"))
	// Else a text that was never in view may be measured only as far as it was drawn.
	text.Send(Sel("layoutManager")).Send(Sel("ensureLayoutForTextContainer:"), text.Send(Sel("textContainer")))
	text.Send(Sel("sizeToFit"))
	seen := objc.Send[quartz.CGRect](scroller, Sel("documentVisibleRect"))
	all := objc.Send[quartz.CGRect](text, Sel("bounds"))
	const rounding = 2
	return seen.Origin.Y+seen.Size.Height >= all.Origin.Y+all.Size.Height-rounding
}

// Picture puts a picture, encoded as PNG, into a view.
func Picture(in objc.ID, png []byte, frame quartz.CGRect, sticks uint) objc.ID {
	v := view("NSImageView", in, frame, sticks)
	v.Send(Sel("setImageScaling:"), NSImageScaleProportionallyUpOrDown)
	i := Image(png, image.Point{})
	v.Send(Sel("setImage:"), i)
	i.Send(Sel("release"))
	return v
}

// Image makes an NSImage of a PNG, to be shown at a size in points, its own where
// size is zero. The caller releases it.
func Image(png []byte, size image.Point) objc.ID {
	data := Class("NSData").Send(Sel("dataWithBytes:length:"), unsafe.Pointer(unsafe.SliceData(png)), uint(len(png)))
	i := Class("NSImage").Send(Sel("alloc")).Send(Sel("initWithData:"), data)
	if size != (image.Point{}) {
		i.Send(Sel("setSize:"), quartz.CGSize{Width: float64(size.X), Height: float64(size.Y)})
	}
	return i
}
