// Command relicverify has relic, a signer and verifier of other people, look at an
// app: every slice's pages and parts and the message of the signature. It is a
// module of its own, so that relic's dependencies are none of the app's.
package main

import (
	"bytes"
	"debug/macho"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/sassoftware/relic/v8/lib/fruit/machos"
)

func main() {
	if len(os.Args) != 3 {
		fmt.Fprintln(os.Stderr, "usage: relicverify APP PROGRAM")
		os.Exit(2)
	}
	if err := check(os.Args[1], os.Args[2]); err != nil {
		fmt.Fprintln(os.Stderr, "relicverify:", err)
		os.Exit(1)
	}
}

func check(app, program string) error {
	contents := filepath.Join(app, "Contents")
	info, err := os.ReadFile(filepath.Join(contents, "Info.plist"))
	if err != nil {
		return err
	}
	resources, err := os.ReadFile(filepath.Join(contents, "_CodeSignature", "CodeResources"))
	if err != nil {
		return err
	}
	b, err := os.ReadFile(filepath.Join(contents, "MacOS", program))
	if err != nil {
		return err
	}
	fat, err := macho.NewFatFile(bytes.NewReader(b))
	if err != nil {
		return err
	}
	for _, a := range fat.Arches {
		v, err := machos.Verify(io.NewSectionReader(bytes.NewReader(b), int64(a.Offset), int64(a.Size)), info, resources, false)
		if err != nil {
			return fmt.Errorf("%s: %w", a.Cpu, err)
		}
		if v.Signature == nil || v.Signature.Certificate == nil {
			return errors.New("no certificate: relic knows no ad hoc signatures")
		}
		d := v.Blob.Directories[0]
		fmt.Printf("relic: %s is %s, by %s\n", a.Cpu, d.SigningIdentity, v.Signature.Certificate.Subject)
		requirements, err := v.Blob.Requirements()
		if err != nil {
			return fmt.Errorf("%s: requirements: %w", a.Cpu, err)
		}
		requirements.Dump(os.Stdout)
	}
	return nil
}
