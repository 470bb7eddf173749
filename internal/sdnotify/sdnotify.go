// Package sdnotify tells a service manager that this process is ready, by the protocol of systemd's sd_notify.
package sdnotify

import (
	"net"
	"time"
)

// Ready tells the service manager at socket, which is the value of NOTIFY_SOCKET, that this process is ready. It does
// nothing if socket is empty: no manager waits then.
func Ready(socket string) error {
	if socket == "" {
		return nil
	}
	conn, err := net.DialTimeout("unixgram", socket, time.Second)
	if err != nil {
		return err
	}
	defer conn.Close() //nolint:errcheck // the message is out
	// The manager may be too busy to read: it must not hold the process up.
	if err := conn.SetWriteDeadline(time.Now().Add(time.Second)); err != nil {
		return err
	}
	_, err = conn.Write([]byte("READY=1"))
	return err
}
