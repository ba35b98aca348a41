// Command extract writes the table of sdkcheck: of the tables made from Apple's
// headers it keeps only what our code uses.
//
//	go run ./packaging/sdkcheck/extract -sdk DIR
//
// DIR holds selectors.json, functions.json, constants.json and overrides.json.
// What they lack is in additions.json beside table.json, each with its source.
package main

import (
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"path/filepath"

	"drawbridge/packaging/sdkcheck"
)

func main() {
	sdk := flag.String("sdk", "", "`directory` of the tables made from the headers")
	dir := flag.String("dir", "packaging/sdkcheck", "`directory` of table.json and additions.json")
	flag.Parse()
	if err := run(*sdk, *dir); err != nil {
		fmt.Fprintln(os.Stderr, "extract:", err)
		os.Exit(1)
	}
}

func run(sdk, dir string) error {
	if sdk == "" {
		return fmt.Errorf("say with -sdk where the tables made from the headers are")
	}
	pkgs, err := sdkcheck.Load(".", "./...")
	if err != nil {
		return err
	}
	var uses []sdkcheck.Use
	for _, p := range pkgs {
		uses = append(uses, sdkcheck.Uses(p)...)
	}
	var s sdkcheck.SDK
	for name, v := range map[string]any{
		filepath.Join(sdk, "selectors.json"): &s.Selectors,
		filepath.Join(sdk, "functions.json"): &s.Functions,
		filepath.Join(sdk, "constants.json"): &s.Constants,
		filepath.Join(sdk, "overrides.json"): &s.Overrides,
		filepath.Join(dir, "additions.json"): &s.Additions,
	} {
		b, err := os.ReadFile(name)
		if err != nil {
			return err
		}
		if err := json.Unmarshal(b, v); err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
	}
	t, err := s.Extract(uses)
	if err != nil {
		return err
	}
	out, err := json.MarshalIndent(t, "", "\t")
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(dir, "table.json"), append(out, '\n'), 0o644)
}
