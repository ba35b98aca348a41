//go:build !darwin && !standin

package main

func onFirstThread(f func()) { f() }
