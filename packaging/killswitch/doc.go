// Package killswitch holds the model switch against programs by others: the
// official clients of model providers, the agent as it ships, and a model host
// that counts what reaches it. It is all tests.
package killswitch
