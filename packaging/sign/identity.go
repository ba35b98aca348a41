package sign

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/asn1"
	"encoding/pem"
	"errors"
	"fmt"
	"io/fs"
	"math/big"
	"os"
	"path/filepath"
	"slices"
	"time"

	"software.sslmate.com/src/go-pkcs12"

	"drawbridge/bridge/private"
)

// Identity is a key and its certificate. macOS takes two apps for the same one,
// and keeps the permissions given to it, if they were signed with one identity.
// A nil *Identity stands for an ad hoc signature.
type Identity struct {
	Cert  *x509.Certificate
	Chain []*x509.Certificate // issuers, the nearest first
	Key   crypto.Signer
}

// TeamID is the team of a Developer ID, and empty for any other certificate.
func (id *Identity) TeamID() string {
	if !hasExtension(id.Cert, oidDeveloperIDApplication) || len(id.Chain) == 0 ||
		!hasExtension(id.Chain[0], oidDeveloperIDAuthority) || len(id.Cert.Subject.OrganizationalUnit) != 1 {
		return ""
	}
	return id.Cert.Subject.OrganizationalUnit[0]
}

func (id *Identity) size() int {
	n := len(id.Cert.Raw)
	for _, c := range id.Chain {
		n += len(c.Raw)
	}
	return n
}

// check refuses what must not sign at a time.
func (id *Identity) check(now time.Time) error {
	name := id.Cert.Subject.CommonName
	switch {
	case now.After(id.Cert.NotAfter):
		return fmt.Errorf("the certificate %q expired on %s: renew it, or make a new identity", name, id.Cert.NotAfter.Format(time.DateOnly))
	case now.Before(id.Cert.NotBefore):
		return fmt.Errorf("the certificate %q is valid only from %s: is the clock right?", name, id.Cert.NotBefore.Format(time.DateOnly))
	}
	public, ok := id.Key.Public().(interface{ Equal(crypto.PublicKey) bool })
	if !ok || !public.Equal(id.Cert.PublicKey) {
		return fmt.Errorf("the key does not belong to the certificate %q", name)
	}
	if !slices.Contains(id.Cert.ExtKeyUsage, x509.ExtKeyUsageCodeSigning) {
		return fmt.Errorf("the certificate %q is not for signing code", name)
	}
	if err := checkKey(public); err != nil {
		return fmt.Errorf("the certificate %q: %w", name, err)
	}
	return id.checkChain()
}

// leastBits is what an RSA key must have: macOS takes shorter ones for broken.
const leastBits = 2048

// checkKey refuses the keys with which nothing is signed here, or that macOS does
// not take.
func checkKey(public any) error {
	switch k := public.(type) {
	case *rsa.PublicKey:
		if n := k.N.BitLen(); n < leastBits {
			return fmt.Errorf("its RSA key has %d bits, and less than %d are not safe: make a new identity", n, leastBits)
		}
		return nil
	case *ecdsa.PublicKey:
		return nil
	case ed25519.PublicKey:
		return errors.New("its key is an Ed25519 one, with which macOS knows no signed code: RSA and ECDSA sign")
	}
	return fmt.Errorf("its key is of a kind (%T) that does not sign code: RSA and ECDSA do", public)
}

// ChainError says that a Developer ID cannot be told from a certificate of anybody,
// so that macOS would be given another requirement than that of its team.
type ChainError struct{ Name, Lacks string }

func (e *ChainError) Error() string {
	return fmt.Sprintf("the certificate %q has the mark of a Developer ID and %s, without which permissions are not tied to its team", e.Name, e.Lacks)
}

// checkChain refuses a Developer ID without what makes it one.
func (id *Identity) checkChain() error {
	name := id.Cert.Subject.CommonName
	switch {
	case !hasExtension(id.Cert, oidDeveloperIDApplication):
		return nil
	case len(id.Chain) == 0:
		return &ChainError{name, "comes without its issuer"}
	case !hasExtension(id.Chain[0], oidDeveloperIDAuthority):
		return &ChainError{name, fmt.Sprintf("comes with an issuer, %q, that has not the mark of Apple's Developer ID authority", id.Chain[0].Subject.CommonName)}
	case id.TeamID() == "":
		return &ChainError{name, "does not name one team"}
	}
	return nil
}

// ReadPKCS12 reads a certificate with its key and issuers, as Keychain Access
// exports them, for signing at a time. Issuers that the file lacks may be given
// beside it.
func ReadPKCS12(b []byte, password string, issuers []*x509.Certificate, now time.Time) (*Identity, error) {
	key, cert, chain, err := pkcs12.DecodeChain(b, password)
	if errors.Is(err, pkcs12.ErrIncorrectPassword) {
		return nil, errors.New("the password does not open the certificate file")
	}
	if err != nil {
		return nil, fmt.Errorf("the certificate file is no PKCS#12 with one certificate and its key: %w", err)
	}
	signer, ok := key.(crypto.Signer)
	if !ok {
		return nil, fmt.Errorf("the certificate file holds a key that cannot sign (%T)", key)
	}
	id := &Identity{Cert: cert, Chain: inOrder(cert, append(chain, issuers...)), Key: signer}
	if err := id.check(now); err != nil {
		return nil, err
	}
	return id, nil
}

// ParseCertificates reads certificates from PEM, else from one DER.
func ParseCertificates(b []byte) ([]*x509.Certificate, error) {
	var der []byte
	for rest := b; ; {
		var block *pem.Block
		if block, rest = pem.Decode(rest); block == nil {
			break
		}
		if block.Type == "CERTIFICATE" {
			der = append(der, block.Bytes...)
		}
	}
	if der == nil {
		der = b
	}
	all, err := x509.ParseCertificates(der)
	if err == nil && len(all) == 0 {
		err = errors.New("it is empty")
	}
	if err != nil {
		return nil, fmt.Errorf("that is no file of certificates, in PEM or DER: %w", err)
	}
	return all, nil
}

// inOrder puts the issuers of a certificate in order, the nearest first, and
// leaves out what does not belong to them.
func inOrder(cert *x509.Certificate, issuers []*x509.Certificate) []*x509.Certificate {
	var out []*x509.Certificate
	for cert.CheckSignatureFrom(cert) != nil {
		i := slices.IndexFunc(issuers, func(c *x509.Certificate) bool {
			return !slices.ContainsFunc(out, c.Equal) && cert.CheckSignatureFrom(c) == nil
		})
		if i < 0 {
			break
		}
		cert = issuers[i]
		out = append(out, cert)
	}
	return out
}

// maxPEM bounds an identity file; one has about 3 kB.
const maxPEM = 1 << 16

// ReadFile reads an identity that Create made, for signing at a time. The file
// must be its owner's alone. A missing one is fs.ErrNotExist.
func ReadFile(path string, now time.Time) (*Identity, error) {
	b, err := private.ReadFile(path, maxPEM)
	if err != nil {
		return nil, err
	}
	var id Identity
	for {
		var block *pem.Block
		if block, b = pem.Decode(b); block == nil {
			break
		}
		switch block.Type {
		case "CERTIFICATE":
			id.Cert, err = x509.ParseCertificate(block.Bytes)
		case "PRIVATE KEY":
			var key any
			if key, err = x509.ParsePKCS8PrivateKey(block.Bytes); err == nil {
				id.Key, _ = key.(crypto.Signer)
			}
		}
		if err != nil {
			return nil, fmt.Errorf("%s: %w", path, err)
		}
	}
	if id.Cert == nil || id.Key == nil {
		return nil, fmt.Errorf("%s holds no certificate with its key: take a copy from your backup, or make a new identity", path)
	}
	if err := id.check(now); err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return &id, nil
}

// lifetime of an identity: the permissions given to an app end with it.
const lifetime = 20 // years

// Create makes an identity of our own and writes it to a new file (0600). It
// never replaces one, and refuses a place inside a source tree, where it would be
// published.
func Create(path, name string, now time.Time) (*Identity, error) {
	path, err := filepath.Abs(path)
	if err != nil {
		return nil, err
	}
	if tree := sourceTree(filepath.Dir(path)); tree != "" {
		return nil, fmt.Errorf("%s is inside the source tree %s, from where a key gets published: name a place outside", path, tree)
	}
	key, err := rsa.GenerateKey(rand.Reader, 2048) // what Keychain Access makes and every macOS takes
	if err != nil {
		return nil, err
	}
	serial, err := rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 127))
	if err != nil {
		return nil, err
	}
	usage, err := asn1.Marshal([]asn1.ObjectIdentifier{{1, 3, 6, 1, 5, 5, 7, 3, 3}})
	if err != nil {
		return nil, err
	}
	template := &x509.Certificate{
		SerialNumber:          serial,
		Subject:               pkix.Name{CommonName: name},
		NotBefore:             now.Add(-time.Hour), // clocks differ
		NotAfter:              now.AddDate(lifetime, 0, 0),
		KeyUsage:              x509.KeyUsageDigitalSignature,
		BasicConstraintsValid: true,
		// Signing code and nothing else, critical as macOS wants it.
		ExtraExtensions: []pkix.Extension{{Id: asn1.ObjectIdentifier{2, 5, 29, 37}, Critical: true, Value: usage}},
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		return nil, err
	}
	cert, err := x509.ParseCertificate(der)
	if err != nil {
		return nil, err
	}
	secret, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		return nil, err
	}
	content := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
	content = append(content, pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: secret})...)
	if err := private.Dir(filepath.Dir(path)); err != nil {
		return nil, err
	}
	return &Identity{Cert: cert, Key: key}, writeNew(path, content)
}

// writeNew writes a file that does not exist yet, whole or not at all.
func writeNew(path string, content []byte) (err error) {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if errors.Is(err, fs.ErrExist) {
		return fmt.Errorf("%s exists: an identity is never replaced, since apps signed with it would lose their permissions; move it away if you mean it", path)
	}
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			_ = f.Close()
			_ = os.Remove(path)
		}
	}()
	if _, err = f.Write(content); err != nil {
		return err
	}
	if err = f.Sync(); err != nil {
		return err
	}
	return f.Close()
}

// sourceTree is the directory at or above dir that is a repository or a Go
// module, or empty.
func sourceTree(dir string) string {
	for {
		for _, mark := range []string{".git", "go.mod"} {
			if _, err := os.Lstat(filepath.Join(dir, mark)); err == nil {
				return dir
			}
		}
		up := filepath.Dir(dir)
		if up == dir {
			return ""
		}
		dir = up
	}
}
