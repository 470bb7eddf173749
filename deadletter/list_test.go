package deadletter_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/sluicehq/sluice/deadletter"
)

func open(t *testing.T) *deadletter.List {
	t.Helper()
	list, err := deadletter.Open(filepath.Join(t.TempDir(), "state", "dead-letters"))
	if err != nil {
		t.Fatal(err)
	}
	return list
}

func entry(args ...string) deadletter.Entry {
	return deadletter.Entry{Agent: "a", Argv: deadletter.Texts(args), Dir: "/", Attempts: 6, ExitCode: 75}
}

func add(t *testing.T, list *deadletter.List, e deadletter.Entry) string {
	t.Helper()
	id, dropped, err := list.Add(e)
	if err != nil || len(dropped) != 0 {
		t.Fatalf("dropped %v, error %v", dropped, err)
	}
	return id
}

func entries(t *testing.T, list *deadletter.List) []deadletter.Entry {
	t.Helper()
	all, err := list.Entries()
	if err != nil {
		t.Fatal(err)
	}
	return all
}

func TestEverythingComesBack(t *testing.T) {
	list := open(t)
	if got := entries(t, list); len(got) != 0 {
		t.Fatalf("a new list holds %v", got)
	}
	at := time.Date(2026, time.March, 4, 12, 0, 0, 123456789, time.UTC)
	want := deadletter.Entry{
		Time: at, Resource: "github", Agent: "a", Class: "p1", User: "u", Model: "m", Tool: "t",
		Cost: map[string]int64{"points": 5}, Emergency: true,
		Argv: []deadletter.Text{"curl", "-H", "x: \xff\x00", "\x1b[31m", "naïve", ""}, Dir: "/tmp/\xfe", Config: "/etc/sluice.yaml", Store: "file:",
		Wait: deadletter.Millis(30 * time.Second), TTL: deadletter.Millis(time.Minute), Most: 6, Deadline: deadletter.Millis(10 * time.Minute),
		WaitsFor: []string{"b"}, NewWork: true, Attempts: 6, Rounds: 1, First: at, Last: at.Add(time.Minute), Reason: "attempts", ExitCode: 75,
		Waits: []deadletter.Wait{{Attempt: 2, Waited: deadletter.Millis(time.Second), Why: "backoff"}},
	}
	want.ID = add(t, list, want)
	got, err := list.Get(want.ID)
	if err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("got %+v, %v;\nwant %+v", got, err, want)
	}
	if got.Program() != "curl" || !slices.Equal(got.Args(), []string{"curl", "-H", "x: \xff\x00", "\x1b[31m", "naïve", ""}) {
		t.Errorf("it ran %q", got.Args())
	}
}

func TestOnlyItsOwnerCanReadIt(t *testing.T) {
	if runtime.GOOS == "windows" {
		return // no such modes; the user's directory has its own protection
	}
	list := open(t)
	if err := os.MkdirAll(list.Dir(), 0o755); err != nil { // as somebody else might have
		t.Fatal(err)
	}
	id := add(t, list, entry("true"))
	for name, want := range map[string]os.FileMode{list.Dir(): 0o700, filepath.Join(list.Dir(), id+".json"): 0o600} {
		info, err := os.Stat(name)
		if err != nil || info.Mode().Perm() != want {
			t.Errorf("%s: mode %v, %v; want %v", name, info.Mode().Perm(), err, want)
		}
	}
	if files, _ := os.ReadDir(list.Dir()); len(files) != 1 {
		t.Errorf("besides the entry there are %v", files)
	}
}

func TestIDsSortByTimeAndCanBeShortened(t *testing.T) {
	list := open(t)
	first := add(t, list, entry("first"))
	for before := time.Now().UnixMilli(); time.Now().UnixMilli() == before; {
		runtime.Gosched() // ids are told apart by time from one millisecond to the next
	}
	second := add(t, list, entry("second"))
	if all := entries(t, list); len(all) != 2 || all[0].ID != first || all[1].ID != second {
		t.Errorf("listed as %v, want %s and %s", all, first, second)
	}
	n := 0
	for first[n] == second[n] {
		n++
	}
	if e, err := list.Get(strings.ToUpper(first[:n+1])); err != nil || e.ID != first {
		t.Errorf("%s: got %v, %v", first[:n+1], e.ID, err)
	}
	for id, want := range map[string]error{
		first[:n]: deadletter.ErrAmbiguous, "": deadletter.ErrUnknown, "zzz": deadletter.ErrUnknown, "../" + first: deadletter.ErrUnknown,
		first + "0": deadletter.ErrUnknown, "000000000000": deadletter.ErrUnknown, "\x1b[2J": deadletter.ErrUnknown,
	} {
		if _, err := list.Get(id); !errors.Is(err, want) || strings.Contains(err.Error(), "\x1b") {
			t.Errorf("%q: got %v, want %v", id, err, want)
		}
	}
}

func TestDamagedEntriesAreListedAndDropped(t *testing.T) {
	list := open(t)
	good := add(t, list, entry("true"))
	data, err := os.ReadFile(filepath.Join(list.Dir(), good+".json"))
	if err != nil {
		t.Fatal(err)
	}
	contents := map[string]string{
		"0000000000aa": "", "0000000000bb": "{\"id\": \"0000000000bb\"", "0000000000cc": string(data), "0000000000dd": `{"id":"0000000000dd","argv":[]}`,
		"0000000000ee": strings.Repeat(" ", deadletter.MaxEntry+10), "0000000000ff": `{"id":"0000000000ff","argv":["x"],"wait_ms":1e300}`,
		"0000000000gg": `{"id":"0000000000gg","argv":["x"],"deadline_ms":9223372036854775807}`,
	}
	for id, content := range contents {
		if err := os.WriteFile(filepath.Join(list.Dir(), id+".json"), []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for _, name := range []string{"notes.json", "README", "0000000000uu.json"} { // not ours: u is in no id
		if err := os.WriteFile(filepath.Join(list.Dir(), name), nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	all := entries(t, list)
	if len(all) != len(contents)+1 {
		t.Fatalf("%d are listed, want %d", len(all), len(contents)+1)
	}
	for _, e := range all {
		if e.ID == good {
			continue
		}
		if e.Damaged == "" {
			t.Errorf("%s: nothing is said to be wrong with %+v", e.ID, e)
		}
		if _, err := list.Claim(e.ID); !errors.Is(err, deadletter.ErrDamaged) {
			t.Errorf("%s: claimed with %v", e.ID, err)
		}
		if err := list.Remove(e.ID); err != nil {
			t.Error(err)
		}
	}
	if all := entries(t, list); len(all) != 1 || all[0].ID != good {
		t.Errorf("left are %v", all)
	}
}

func TestOldestGoWhenThereAreTooMany(t *testing.T) {
	list := open(t)
	if err := os.MkdirAll(list.Dir(), 0o700); err != nil {
		t.Fatal(err)
	}
	for i := range deadletter.MaxEntries { // written by hand: a thousand fsyncs take long
		id := fmt.Sprintf("00000%04d000", i)
		content := fmt.Sprintf(`{"id":%q,"argv":["true"]}`, id)
		if err := os.WriteFile(filepath.Join(list.Dir(), id+".json"), []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	held, err := list.Claim("000000000000")
	if err != nil {
		t.Fatal(err)
	}
	id, dropped, err := list.Add(entry("true"))
	if err != nil || !slices.Equal(dropped, []string{"000000001000"}) {
		t.Errorf("dropped %v, %v; want the oldest that is not being retried", dropped, err)
	}
	held.Release()
	if _, dropped, err := list.Add(entry("true")); err != nil || !slices.Equal(dropped, []string{"000000000000"}) {
		t.Errorf("dropped %v, %v; want the oldest", dropped, err)
	}
	all := entries(t, list)
	if len(all) != deadletter.MaxEntries || all[len(all)-1].ID < id {
		t.Errorf("%d are left, the last %s", len(all), all[len(all)-1].ID)
	}
}

func TestOldestGoWhenTheyAreTooLarge(t *testing.T) {
	list := open(t)
	large := entry("echo", strings.Repeat("x", deadletter.MaxEntry-2000))
	var ids, gone []string
	for range 6 {
		id, dropped, err := list.Add(large)
		if err != nil {
			t.Fatal(err)
		}
		ids, gone = append(ids, id), append(gone, dropped...)
	}
	if len(gone) != 2 || len(entries(t, list)) != 4 {
		t.Errorf("of %v went %v", ids, gone)
	}
	if _, _, err := list.Add(entry("echo", strings.Repeat("x", deadletter.MaxEntry))); !errors.Is(err, deadletter.ErrTooLarge) {
		t.Errorf("got %v, want %v", err, deadletter.ErrTooLarge)
	}
	if _, _, err := list.Add(entry()); err == nil {
		t.Error("an entry without a command was taken")
	}
	if files, _ := os.ReadDir(list.Dir()); len(files) != 4 {
		t.Errorf("left are %v", files)
	}
}

func TestManyAddAndRemoveAtOnce(t *testing.T) {
	list := open(t)
	var wg sync.WaitGroup
	var mu sync.Mutex
	seen := map[string]bool{}
	for i := range 4 {
		wg.Go(func() {
			for k := range 10 {
				id, _, err := list.Add(entry("echo", fmt.Sprint(i, k)))
				if err != nil {
					t.Error(err)
					return
				}
				mu.Lock()
				if seen[id] {
					t.Errorf("%s was given twice", id)
				}
				seen[id] = true
				mu.Unlock()
				if _, err := list.Entries(); err != nil {
					t.Error(err)
				}
				if k%2 == 1 {
					if err := list.Remove(id); err != nil {
						t.Error(err)
					}
				}
			}
		})
	}
	wg.Wait()
	all := entries(t, list)
	if len(all) != 20 {
		t.Errorf("%d are left, want 20", len(all))
	}
	for _, e := range all {
		if e.Damaged != "" {
			t.Errorf("%s: %s", e.ID, e.Damaged)
		}
	}
}

func TestListNeedsADirectory(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := deadletter.Open(file); err == nil {
		t.Error("a file was taken for a list")
	}
	list, err := deadletter.Open(filepath.Join(t.TempDir(), "later"))
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(list.Dir(), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, _, err := list.Add(entry("true")); err == nil {
		t.Error("an entry was added to a file")
	}
}
