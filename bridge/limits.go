package bridge

import "time"

// Limits bound what clients can take. A zero field means its default.
type Limits struct {
	Connections          int   // open at once: websockets, sessions, HTTP requests
	ConnectionsPerClient int   // the same, of one client
	CallsPerConnection   int   // requests in flight on one connection
	FrameBytes           int64 // one message from a client
	ResultBytesWS        int64 // one answer over a websocket
	ResultBytesHTTP      int64 // one answer over HTTP
	QueueBytes           int64 // answers that wait for one slow reader
	SessionsPerClient    int   // HTTP sessions of one client
	SessionIdle          time.Duration
	WriteTimeout         time.Duration // for one write to a client that does not read
	PingInterval         time.Duration // of websockets; a client silent for two is gone
}

// DefaultLimits returns the limits that hold where none are set.
func DefaultLimits() Limits {
	return Limits{
		Connections:          256,
		ConnectionsPerClient: 64,
		CallsPerConnection:   64,
		FrameBytes:           16 << 20,
		ResultBytesWS:        128 << 20,
		ResultBytesHTTP:      128 << 20,
		QueueBytes:           64 << 20,
		SessionsPerClient:    32,
		SessionIdle:          30 * time.Minute,
		WriteTimeout:         time.Minute,
		PingInterval:         30 * time.Second,
	}
}

func (l Limits) withDefaults() Limits {
	d := DefaultLimits()
	orInt := func(v *int, d int) {
		if *v <= 0 {
			*v = d
		}
	}
	orBytes := func(v *int64, d int64) {
		if *v <= 0 {
			*v = d
		}
	}
	orTime := func(v *time.Duration, d time.Duration) {
		if *v <= 0 {
			*v = d
		}
	}
	orInt(&l.Connections, d.Connections)
	orInt(&l.ConnectionsPerClient, d.ConnectionsPerClient)
	orInt(&l.CallsPerConnection, d.CallsPerConnection)
	orBytes(&l.FrameBytes, d.FrameBytes)
	orBytes(&l.ResultBytesWS, d.ResultBytesWS)
	orBytes(&l.ResultBytesHTTP, d.ResultBytesHTTP)
	orBytes(&l.QueueBytes, d.QueueBytes)
	orInt(&l.SessionsPerClient, d.SessionsPerClient)
	orTime(&l.SessionIdle, d.SessionIdle)
	orTime(&l.WriteTimeout, d.WriteTimeout)
	orTime(&l.PingInterval, d.PingInterval)
	return l
}
