package audit

import (
	"testing"
	"time"
)

func TestAppendTime(t *testing.T) {
	for _, ts := range []time.Time{
		time.Date(2026, 11, 30, 9, 5, 7, 42_000, time.UTC),
		time.Date(1999, 1, 2, 23, 59, 59, 999_999_999, time.FixedZone("east", 5*3600+1800)),
		time.Unix(0, 0),
	} {
		if got, want := string(appendTime(nil, ts)), ts.UTC().Format("2006-01-02T15:04:05.000000Z"); got != want {
			t.Errorf("%v is written %s, want %s", ts, got, want)
		}
	}
}
