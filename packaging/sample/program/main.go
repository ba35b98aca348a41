// Command program does nothing. It is the program of the sample app.
package main

func main() {}
