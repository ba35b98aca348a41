//go:build !darwin && !standin

package doctor

import "context"

// testApp has no way to read another application here.
func testApp(context.Context, Options, Gestures) []Check {
	return []Check{{Name: "app_click", Detail: "not tried: what another application made of gestures can be read back on macOS only", Next: "leave --app out: the test then uses a window of its own"}}
}
