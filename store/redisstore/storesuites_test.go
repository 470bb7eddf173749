//go:build slow

package redisstore_test

import (
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/sluicehq/sluice/internal/redisrun"
	"github.com/sluicehq/sluice/store/redisstore"
	"github.com/sluicehq/sluice/store/storetest"
)

// The whole suite of stores, and random traces, elsewhere than on one Redis. Run with make store-suites.

func suites(t *testing.T, url string) {
	t.Run("suite", func(t *testing.T) { storetest.RunVirtual(t, opener(t, url)) })
	t.Run("same decisions", func(t *testing.T) { sameDecisions(t, opener(t, url)) })
}

func TestStoreOnACluster(t *testing.T) {
	t.Parallel()
	suites(t, redisrun.NewCluster(t, "cluster-node-timeout 60000").URL()) // nobody dies here
}

func TestStoreBehindSentinels(t *testing.T) {
	t.Parallel()
	suites(t, redisrun.NewSteadySentinel(t).URL())
}

func TestStoreOnValkey(t *testing.T) {
	t.Parallel()
	path, err := exec.Command(filepath.Join("..", "..", "scripts", "need-valkey")).Output()
	if err != nil {
		t.Fatal(err)
	}
	suites(t, redisrun.NewServer(t, redisrun.Options{Binary: strings.TrimSpace(string(path))}).URL())
}

// TLS, as a user with the least rights.
func TestStoreOverTLSWithTheLeastRights(t *testing.T) {
	t.Parallel()
	certs, err := redisrun.WriteCerts(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	s := redisrun.NewServer(t, redisrun.Options{TLS: &certs})
	command := append([]string{"ACL", "SETUSER", "least", "on", ">secret", "resetkeys", "~t*", "resetchannels", "&t*", "-@all"}, redisstore.Rights...)
	if _, err := s.Do(t.Context(), command...); err != nil {
		t.Fatal(err)
	}
	suites(t, "rediss://least:secret@"+s.TLSAddr()+"?ca="+certs.CA+"&cert="+certs.ClientCert+"&key="+certs.ClientKey)
}
