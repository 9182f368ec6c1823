package sdk

import (
	"bufio"
	"crypto/tls"
	"crypto/x509"
	"encoding/base64"
	"errors"
	"fmt"
	"os"
	"strings"

	"github.com/mcp-pif/mcp-pif/plugins/internal/wire"
)

// serverTLS is what the plugin serves by, or nothing if its host has no certificate. go-plugin
// would do the same with a certificate of its own, which costs more. The host learns of this one
// by the line with which go-plugin introduces the process.
func serverTLS() (*tls.Config, error) {
	text := os.Getenv("PLUGIN_CLIENT_CERT")
	if text == "" {
		return nil, nil
	}
	host := x509.NewCertPool()
	if !host.AppendCertsFromPEM([]byte(text)) {
		return nil, errors.New("the host's certificate isn't one")
	}
	c, err := wire.NewCertificate(x509.ExtKeyUsageServerAuth)
	if err != nil {
		return nil, err
	}
	return &tls.Config{
		Certificates: []tls.Certificate{c}, ClientAuth: tls.RequireAndVerifyClientCert, ClientCAs: host, MinVersion: tls.VersionTLS12,
	}, introduceBy(base64.RawStdEncoding.EncodeToString(c.Certificate[0]))
}

// introduceBy adds a certificate to the line that go-plugin is about to write to os.Stdout.
func introduceBy(certificate string) error {
	r, w, err := os.Pipe()
	if err != nil {
		return err
	}
	out := os.Stdout
	os.Stdout = w // until go-plugin has another one there
	go func() {
		defer r.Close()
		defer w.Close()
		line, err := bufio.NewReader(r).ReadString('\n')
		if err != nil {
			return
		}
		parts := strings.Split(strings.TrimSuffix(line, "\n"), "|")
		if len(parts) > 5 {
			parts[5] = certificate
		}
		fmt.Fprintln(out, strings.Join(parts, "|"))
	}()
	return nil
}
