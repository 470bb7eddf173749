//go:build slow && linux

package hosts

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

const (
	redisPort    = "6379"
	sentinelPort = "26379"
	masterName   = "fleet"
)

// startRedis starts a Redis server on a host, as a replica of master if that is not nil.
func (h *host) startRedis(master *host) {
	h.net.Helper()
	lines := []string{"bind " + h.inner + " 127.0.0.1", "port " + redisPort, "protected-mode no", `save ""`, "appendonly no", "repl-diskless-sync-delay 0"}
	if master != nil {
		lines = append(lines, "replicaof "+master.inner+" "+redisPort)
	}
	h.redis = h.startServer("redis", lines)
}

// startSentinel starts the Sentinel of a host. A Sentinel that was killed continues with its file.
func (h *host) startSentinel(master *host) {
	h.net.Helper()
	h.sentinel = h.startServer("sentinel", []string{
		"bind " + h.inner + " 127.0.0.1", "port " + sentinelPort, "protected-mode no",
		"sentinel monitor " + masterName + " " + master.inner + " " + redisPort + " 2",
		// A busy machine must not look like a dead one.
		"sentinel down-after-milliseconds " + masterName + " 4000",
		"sentinel failover-timeout " + masterName + " 8000",
	}, "--sentinel")
}

func (h *host) startServer(name string, lines []string, more ...string) *process {
	h.net.Helper()
	dir := filepath.Join(h.dir, name)
	file := filepath.Join(dir, name+".conf")
	if _, err := os.Stat(file); err != nil {
		if err := os.MkdirAll(dir, 0o700); err != nil {
			h.net.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(strings.Join(lines, "\n")+"\n"), 0o600); err != nil {
			h.net.Fatal(err)
		}
	}
	return h.run(name, dir, environment(h.dir), redisServer, append([]string{file}, more...)...)
}

// ask sends a command to a server of the host and returns its reply, one value per line.
func (h *host) ask(port, command string) (string, error) {
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	conn, err := h.dial(ctx, "tcp", "127.0.0.1:"+port)
	if err != nil {
		return "", err
	}
	defer conn.Close() //nolint:errcheck // all was read
	_ = conn.SetDeadline(time.Now().Add(5 * time.Second))
	if _, err := io.WriteString(conn, command+"\r\n"); err != nil {
		return "", err
	}
	var out strings.Builder
	err = readReply(bufio.NewReader(conn), &out)
	return out.String(), err
}

// readReply reads one reply of Redis.
func readReply(in *bufio.Reader, out *strings.Builder) error {
	line, err := in.ReadString('\n')
	if err != nil {
		return err
	}
	kind, rest := line[0], strings.TrimSpace(line[1:])
	switch kind {
	case '-':
		return fmt.Errorf("redis: %s", rest)
	case '$', '*':
		n, err := strconv.Atoi(rest)
		if err != nil || n < 0 {
			return err
		}
		if kind == '$' {
			text := make([]byte, n+2)
			_, err = io.ReadFull(in, text)
			out.Write(text)
			return err
		}
		for range n {
			if err := readReply(in, out); err != nil {
				return err
			}
		}
		return nil
	default:
		out.WriteString(rest + "\n")
		return nil
	}
}

// master returns the address of the server that the host's Sentinel regards as the master.
func (h *host) master() string {
	text, err := h.ask(sentinelPort, "SENTINEL get-master-addr-by-name "+masterName)
	if err != nil {
		return ""
	}
	address, _, _ := strings.Cut(text, "\r")
	return address
}

// knowsAll reports whether the Sentinel of a host knows the replica and both other Sentinels.
func (h *host) knowsAll() bool {
	text, err := h.ask(sentinelPort, "SENTINEL MASTER "+masterName)
	text = strings.ReplaceAll(text, "\r", "")
	return err == nil && strings.Contains(text, "num-slaves\n1\n") && strings.Contains(text, "num-other-sentinels\n2\n")
}
