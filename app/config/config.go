// Package config reads the configuration: one YAML file, every field with a
// default, everything unknown or out of range refused with file and line.
package config

import (
	"time"

	"drawbridge/bridge"
	"drawbridge/bridge/computer"
	"drawbridge/bridge/gate"
	"drawbridge/bridge/host"
)

// Config is everything that a person can set. The zero value is not usable;
// start from [Default].
type Config struct {
	Listen         string                 `yaml:"listen"`
	AllowedHosts   []string               `yaml:"allowed_hosts"`
	AllowedOrigins []string               `yaml:"allowed_origins"`
	AllowXWayland  bool                   `yaml:"allow_xwayland"`
	Computer       computer.Config        `yaml:"computer"`
	HandBack       HandBack               `yaml:"hand_back"`
	Virtual        Virtual                `yaml:"virtual"`
	Clients        map[string]Client      `yaml:"clients"`
	Expose         []string               `yaml:"expose"`
	Hide           []string               `yaml:"hide"`
	Rules          []gate.Rule            `yaml:"rules"`
	Hosts          map[string]host.Config `yaml:"hosts"`
	MainHost       string                 `yaml:"main_host"`
	Approvals      Approvals              `yaml:"approvals"`
	Limits         Limits                 `yaml:"limits"`
	Audit          Audit                  `yaml:"audit"`
	Log            Log                    `yaml:"log"`
}

// HandBack says how batches give way to the person.
type HandBack struct {
	Quiet          time.Duration `yaml:"quiet"`
	AllowUnwatched bool          `yaml:"allow_unwatched"`
	PanicChord     string        `yaml:"panic_chord"` // empty: none
}

// Client narrows the global settings for one client.
type Client struct {
	AllowedActions []computer.ActionType `yaml:"allowed_actions"` // nil: as the global ones
	Display        *int                  `yaml:"display"`         // nil: as the global one
	Expose         []string              `yaml:"expose"`
	Hide           []string              `yaml:"hide"`
}

// Approvals bounds how calls wait for a person.
type Approvals struct {
	Deadline            time.Duration `yaml:"deadline"`
	MaxPendingPerClient int           `yaml:"max_pending_per_client"`
	CoolDown            time.Duration `yaml:"cool_down"`
}

// Limits bounds what programs can make the agent hold. Sizes are bytes.
type Limits struct {
	Connections          int   `yaml:"connections"`
	ConnectionsPerClient int   `yaml:"connections_per_client"`
	CallsPerConnection   int   `yaml:"calls_per_connection"`
	FrameBytes           int64 `yaml:"frame_bytes"`
	ResultBytesWebsocket int64 `yaml:"result_bytes_websocket"`
	ResultBytesHTTP      int64 `yaml:"result_bytes_http"`
	QueueBytes           int64 `yaml:"queue_bytes"`
}

// Audit bounds the record on disk. Sizes are bytes.
type Audit struct {
	MaxBytes    int64 `yaml:"max_bytes"`
	Generations int   `yaml:"generations"`
}

// Log says what the agent's own log holds and how it looks.
type Log struct {
	Level  string `yaml:"level"`
	Format string `yaml:"format"`
}

// Virtual is the size in pixels of a desktop of the agent's own.
type Virtual struct {
	Width  int `yaml:"width"`
	Height int `yaml:"height"`
}

// Default returns what holds where nothing is written.
func Default() Config {
	l := bridge.DefaultLimits()
	return Config{
		Listen:         bridge.DefaultAddr,
		AllowedHosts:   []string{},
		AllowedOrigins: []string{},
		Computer:       computer.DefaultConfig(),
		HandBack:       HandBack{Quiet: computer.DefaultHandBack.Quiet, PanicChord: "ctrl+option+escape"},
		Virtual:        Virtual{Width: 1280, Height: 800},
		Clients:        map[string]Client{},
		Expose:         []string{"*"},
		Hide:           []string{},
		Rules:          []gate.Rule{},
		Hosts:          map[string]host.Config{},
		Approvals:      Approvals{Deadline: 2 * time.Minute, MaxPendingPerClient: 8, CoolDown: 10 * time.Second},
		Limits: Limits{
			Connections: l.Connections, ConnectionsPerClient: l.ConnectionsPerClient, CallsPerConnection: l.CallsPerConnection,
			FrameBytes: l.FrameBytes, ResultBytesWebsocket: l.ResultBytesWS, ResultBytesHTTP: l.ResultBytesHTTP, QueueBytes: l.QueueBytes,
		},
		Audit: Audit{MaxBytes: 16 << 20, Generations: 64},
		Log:   Log{Level: "info", Format: "auto"},
	}
}
