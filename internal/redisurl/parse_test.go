package redisurl

import (
	"fmt"
	"reflect"
	"strings"
	"testing"
	"time"
)

func TestParse(t *testing.T) {
	t.Parallel()
	base := Address{Prefix: "sluice", Timeout: 2 * time.Second}
	with := func(change func(a *Address)) Address {
		a := base
		change(&a)
		return a
	}
	for _, c := range []struct {
		url, shown string // shown "": as the url
		want       Address
	}{
		{"redis://localhost", "redis://localhost:6379", with(func(a *Address) { a.Hosts = []string{"localhost:6379"} })},
		{"REDIS://localhost:6380/", "redis://localhost:6380", with(func(a *Address) { a.Hosts = []string{"localhost:6380"} })},
		{"redis://10.0.0.1:06380/0", "redis://10.0.0.1:6380", with(func(a *Address) { a.Hosts = []string{"10.0.0.1:6380"} })},
		{"redis://[::1]/7", "redis://[::1]:6379/7", with(func(a *Address) { a.Hosts, a.DB = []string{"[::1]:6379"}, 7 })},
		{"redis://[fe80::1%25eth0]:1", "", with(func(a *Address) { a.Hosts = []string{"[fe80::1%eth0]:1"} })},
		{"redis://:hunter2@h:1", "redis://:***@h:1", with(func(a *Address) { a.Hosts, a.password = []string{"h:1"}, newSecret("hunter2") })},
		{"redis://me@h:1", "", with(func(a *Address) { a.Hosts, a.User = []string{"h:1"}, "me" })},
		{"redis://m%40e:h%2Fun%3At%25er+2@h:1", "redis://m%40e:***@h:1", with(func(a *Address) {
			a.Hosts, a.User, a.password = []string{"h:1"}, "m@e", newSecret("h/un:t%er+2")
		})},
		{"redis://me:hun@ter:2@h:1", "redis://me:***@h:1", with(func(a *Address) { a.Hosts, a.User, a.password = []string{"h:1"}, "me", newSecret("hun@ter:2") })},
		{"rediss://h:1/2?prefix=team:a&timeout=500ms", "", with(func(a *Address) {
			a.Hosts, a.TLS, a.DB, a.Prefix, a.Timeout = []string{"h:1"}, true, 2, "team:a", 500*time.Millisecond
		})},
		{"rediss://h:1?cert=/etc/a b.crt&key=k.pem&ca=ca%26.pem&servername=redis.example", "rediss://h:1?cert=/etc/a%20b.crt&key=k.pem&ca=ca%26.pem&servername=redis.example", with(func(a *Address) {
			a.Hosts, a.TLS, a.Cert, a.Key, a.CA, a.ServerName = []string{"h:1"}, true, "/etc/a b.crt", "k.pem", "ca&.pem", "redis.example"
		})},
		{"rediss://h:1?insecure=true", "", with(func(a *Address) { a.Hosts, a.TLS, a.Insecure = []string{"h:1"}, true, true })},
		{"redis+cluster://a,b:2,[::1]:3/0", "redis+cluster://a:6379,b:2,[::1]:3", with(func(a *Address) { a.Mode, a.Hosts = Cluster, []string{"a:6379", "b:2", "[::1]:3"} })},
		{"rediss+cluster://u:p@a:1", "rediss+cluster://u:***@a:1", with(func(a *Address) {
			a.Mode, a.TLS, a.Hosts, a.User, a.password = Cluster, true, []string{"a:1"}, "u", newSecret("p")
		})},
		{"redis+sentinel://a,b:2/my-master", "redis+sentinel://a:26379,b:2/my-master", with(func(a *Address) { a.Mode, a.Hosts, a.Master = Sentinel, []string{"a:26379", "b:2"}, "my-master" })},
		{"rediss+sentinel://u:p@a:1/m/3?sentinel_user=s&sentinel_password=t%26u", "rediss+sentinel://u:***@a:1/m/3?sentinel_user=s&sentinel_password=***", with(func(a *Address) {
			a.Mode, a.TLS, a.Hosts, a.Master, a.DB = Sentinel, true, []string{"a:1"}, "m", 3
			a.User, a.password, a.SentinelUser, a.sentinelPassword = "u", newSecret("p"), "s", newSecret("t&u")
		})},
		{"redis+unix:///run/redis 1.sock?db=2", "redis+unix:///run/redis%201.sock?db=2", with(func(a *Address) { a.unix, a.Hosts, a.DB = true, []string{"/run/redis 1.sock"}, 2 })},
		{"redis+unix://u:p@/r.sock", "redis+unix://u:***@/r.sock", with(func(a *Address) { a.unix, a.Hosts, a.User, a.password = true, []string{"/r.sock"}, "u", newSecret("p") })},
	} {
		got, err := Parse(c.url)
		if err != nil {
			t.Errorf("%s: %v", c.url, err)
			continue
		}
		if !reflect.DeepEqual(got, c.want) || got.password.reveal() != c.want.password.reveal() {
			t.Errorf("%s: %v, want %v", c.url, got, c.want)
		}
		if c.shown == "" {
			c.shown = c.url
		}
		if got.String() != c.shown {
			t.Errorf("%s is shown as %s, want %s", c.url, got, c.shown)
		}
	}
}

func TestParseSaysWhatIsWrong(t *testing.T) {
	t.Parallel()
	for url, want := range map[string]string{
		"":                                       "expected redis://host:port",
		"localhost:6379":                         "expected redis://host:port",
		"redis:localhost":                        "expected redis://host:port",
		"http://h":                               "unknown scheme: expected one of redis://, rediss://, redis+cluster://",
		"redis://":                               "host: it is missing",
		"redis:///1":                             "host: it is missing",
		"redis://u:p@":                           "host: it is missing",
		"redis://:6379":                          "host: there is an empty one",
		"redis://a b":                            "host: expected a name",
		"redis://a%20b":                          "host: expected a name",
		"redis://[::1":                           "expected a ]",
		"redis://[::1]6379":                      "expected a colon and a port",
		"redis://[1.2.3.4]":                      "not an IPv6 address",
		"redis://[::1%25a b]":                    "not an IPv6 address",
		"redis://::1":                            "in brackets",
		"redis://h:":                             "port: expected a number",
		"redis://h:0":                            "port: expected a number",
		"redis://h:65536":                        "port: expected a number",
		"redis://h:+1":                           "port: expected a number",
		"redis://h:-1":                           "port: expected a number",
		"redis://a:1,b:2":                        "host: expected one",
		"redis+cluster://a,,b":                   "host: there is an empty one",
		"redis://h/x":                            "database: expected a number",
		"redis://h/-1":                           "database: expected a number",
		"redis://h/+1":                           "database: expected a number",
		"redis://h/1/2":                          "database: expected a number",
		"redis://h/70000":                        "database: expected a number",
		"redis+cluster://h/1":                    "a cluster has only 0",
		"redis+sentinel://h":                     "master: expected the name",
		"redis+sentinel://h//1":                  "master: expected the name",
		"redis+sentinel://h/a b":                 "master: expected the name",
		"redis+sentinel://h/m/x":                 "database: expected a number",
		"redis+unix://host/run/redis.sock":       "three slashes",
		"redis+unix://":                          "path: expected",
		"redis+unix:///":                         "path: expected",
		"redis+unix:///dir/":                     "path: expected",
		"rediss+unix:///r.sock":                  "unknown scheme",
		"redis://h#x":                            "nothing may follow a #",
		"redis://us%er:pw@h":                     "user: a % has to be",
		"redis://user:p%w@h":                     "password: a % has to be",
		"redis://h?prefx=a":                      "parameter 1: it is unknown; known are ca, cert, db, insecure, key, prefix, sentinel_password, sentinel_user, servername, timeout",
		"redis://h?prefix=a&":                    "parameter 2: it is unknown",
		"redis://h?prefix=":                      "prefix: expected a value",
		"redis://h?prefix":                       "prefix: expected a value",
		"redis://h?prefix={a}":                   "prefix: expected at most",
		"redis://h?prefix=a*":                    "prefix: expected at most",
		"redis://h?prefix=a&prefix=b":            "prefix: it is given twice",
		"redis://h?prefix=%4":                    "prefix: a % has to be",
		"redis://h?timeout=5":                    "timeout: expected a duration",
		"redis://h?timeout=1h":                   "timeout: expected a duration",
		"redis://h?timeout=-1s":                  "timeout: expected a duration",
		"redis://h?db=1":                         "db: it is only for use with redis+unix://",
		"redis://h?ca=f":                         "ca: it is only for use with rediss://",
		"redis://h?sentinel_user=f":              "sentinel_user: it is only for use with redis+sentinel://",
		"rediss://h?cert=f":                      "cert, key: expected both",
		"rediss://h?key=f":                       "cert, key: expected both",
		"rediss://h?insecure=yes":                "insecure: expected true or false",
		"rediss://h?insecure=true&ca=f":          "insecure: it makes ca and servername mean nothing",
		"redis://h/" + strings.Repeat("1", 9000): "longer than",
		"redis+cluster://h" + strings.Repeat(",h", 64): "host: expected at most 64",
	} {
		a, err := Parse(url)
		if err == nil {
			t.Errorf("%.60s: taken as %v", url, a)
		} else if !strings.Contains(err.Error(), want) || !strings.HasPrefix(err.Error(), "redis URL: ") {
			t.Errorf("%.60s: %v, want %q", url, err, want)
		}
	}
}

// Errors never quote the password of a URL, whatever is wrong with the URL.
func TestPasswordIsNeverShown(t *testing.T) {
	t.Parallel()
	const secret = "hunter2"
	for _, url := range []string{
		"redis://me:hunter2@h:x",
		"redis://me:hunter2@",
		"redis://me:hunter2",
		"redis://:hunter2",
		"redis://hunter2:x@h:p",
		"redis://:hun/hunter2@h",
		"redis://:hunter2/x@h",
		"redis://:hunter2?x@h",
		"redis://:a?hunter2@h",
		"redis://:1?hunter2",
		"redis://:a#hunter2@h",
		"redis://me:hunter2%@h",
		"redis://h/hunter2",
		"redis://h?password=hunter2",
		"redis://h?timeout=hunter2",
		"redis+sentinel://h/m?sentinel_password=a&hunter2",
		"redis+sentinel://h/m?sentinel_password=hunter2%",
		"redis+sentinel://h/me hunter2",
		"redis+unix://hunter2",
		"hunter2",
		"hunter2://h",
	} {
		if _, err := Parse(url); err == nil || strings.Contains(err.Error(), secret) {
			t.Errorf("%s: %v", url, err)
		}
	}
	a, err := Parse("redis+sentinel://me:hunter2@h/m?sentinel_password=hunter2")
	if err != nil {
		t.Fatal(err)
	}
	holder := struct {
		hidden Address
		Open   *Address
	}{a, &a}
	for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q"} {
		for _, what := range []any{a, &a, holder, &holder, []Address{a}} {
			if text := fmt.Sprintf(verb, what); strings.Contains(text, secret) {
				t.Errorf("%s: %s", verb, text)
			}
		}
	}
}

func FuzzParse(f *testing.F) {
	for _, seed := range []string{
		"redis://localhost", "rediss://u:p@[::1%25a]:1/2?prefix=a&timeout=1s&cert=a&key=b&ca=c&servername=d",
		"redis+cluster://a,b:2", "redis+sentinel://a/m/1?sentinel_user=a&sentinel_password=b", "redis+unix:///a%20b?db=3", "redis://a?#@,:%zz",
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, url string) {
		a, err := Parse(url)
		if err != nil {
			if !strings.HasPrefix(err.Error(), "redis URL: ") || len(err.Error()) > 500 {
				t.Fatalf("%q: %v", url, err)
			}
			return
		}
		// What is shown says the same, but for the passwords.
		again, err := Parse(a.String())
		if err != nil {
			t.Fatalf("%q is shown as %q: %v", url, a, err)
		}
		again.password, again.sentinelPassword = a.password, a.sentinelPassword
		if !reflect.DeepEqual(a, again) {
			t.Fatalf("%q is shown as %q, which is %q", url, a, again)
		}
	})
}

func FuzzPassword(f *testing.F) {
	f.Add("redis", "me", "", "h:1")
	f.Add("redis+sentinel", "", "/", "h/m?sentinel_password=a")
	f.Fuzz(func(t *testing.T, scheme, user, more, rest string) {
		const secret = "hunter2"
		if strings.Contains(scheme+user+rest, secret) || strings.Contains(scheme+user, "://") {
			return
		}
		a, err := Parse(scheme + "://" + user + ":" + secret + more + "@" + rest)
		text := a.String()
		if err != nil {
			text = err.Error()
		}
		if strings.Contains(text, secret) {
			t.Fatalf("%q %q %q %q: %s", scheme, user, more, rest, text)
		}
	})
}
