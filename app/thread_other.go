//go:build !darwin && !standin

package main

const macOS = false

func onFirstThread(f func()) { f() }
