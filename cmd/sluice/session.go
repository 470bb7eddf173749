package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"os"
	"os/user"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/spf13/cobra"

	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/alert"
	"github.com/sluicehq/sluice/config"
	"github.com/sluicehq/sluice/deadletter"
	"github.com/sluicehq/sluice/envoy"
	"github.com/sluicehq/sluice/eventlog"
	"github.com/sluicehq/sluice/inspect"
	"github.com/sluicehq/sluice/internal/inside"
	"github.com/sluicehq/sluice/internal/upstream"
	"github.com/sluicehq/sluice/provider"
	"github.com/sluicehq/sluice/scaler"
	"github.com/sluicehq/sluice/store"
)

// session is an open gate with the settings of the command line.
type session struct {
	gate  *sluice.Gate
	file  *config.File     // configuration with defaults
	store string           // URL in use, without password
	dir   string           // directory of this machine's files: events, dead letters
	label string           // of the store, in the event log
	log   *eventlog.Writer // never nil
	// letters keeps given-up requests; nil if there is no list.
	letters    *deadletter.Keeper
	configFile string                       // the selected file; empty if none
	hook       atomic.Pointer[alert.Poster] // nil means no alerts

	// clients has the labels in the event log of processes that reach the store through this daemon.
	clients atomic.Pointer[[]string]

	// For serve, which can change its configuration while it runs.
	held   store.Store // a store that the gate does not close; nil if there is none
	url    string      // of the store, as opened
	config sluice.Config
	empty  bool // the store's directory does not exist, and an empty store stands in for it

	limits map[string][]sluice.Limit // of the open resources
	stderr io.Writer
	notes  *slog.Logger // for people: lines on stderr, or serve's log

	outlet atomic.Pointer[outlet] // how serve's requests leave for providers

	inForce atomic.Pointer[config.File] // the configuration that serve's gRPC services go by

	scaler *scaler.Server // serve's, for KEDA; nil if there is none
	envoy  *envoy.Server  // serve's, for Envoy; nil if there is none
}

// openGate opens the store of the command line with the named resources. Without names it opens all: those of the
// configuration or, if it has none, every provider whose limits are known. An unknown name exits with 64, an error in
// the configuration with 78, an error of the store with 69.
//
// It is for commands that ask once and end: without the store they cannot continue.
func openGate(cmd *cobra.Command, resources ...string) (*session, error) {
	return openSession(cmd, resources, sluice.Config{OneShot: true})
}

// openToStay is openGate for commands that keep running: they follow on_store_failure while the store is unreachable.
func openToStay(cmd *cobra.Command, resources ...string) (*session, error) {
	return openSession(cmd, resources, sluice.Config{})
}

// openReadOnly is openGate for commands that only read: they leave limits as other processes have stated them.
func openReadOnly(cmd *cobra.Command, resources ...string) (*session, error) {
	return openSession(cmd, resources, sluice.Config{OneShot: true, ReadOnly: true})
}

// openToLook is openReadOnly for commands that change nothing. If the directory of the store does not exist, they show an
// empty store and do not create it.
func openToLook(cmd *cobra.Command, resources ...string) (*session, error) {
	return openSession(cmd, resources, sluice.Config{OneShot: true, ReadOnly: true, Store: inPlaceOfNone})
}

// inPlaceOfNone is the store that openToLook opens in place of a directory that does not exist.
const inPlaceOfNone = "mem:"

// openSession opens the gate that the configuration describes, with OneShot, ReadOnly and Events of how. Its Store
// is opened in place of a directory that does not exist.
func openSession(cmd *cobra.Command, resources []string, how sluice.Config) (*session, error) {
	return newSession(cmd, resources, how, nil)
}

// newSession implements openSession. If through is not nil, it wraps the store; the session then holds the store, and
// its gate can be replaced.
func newSession(cmd *cobra.Command, resources []string, how sluice.Config, through func(store.Store) store.Store) (*session, error) {
	f, err := configOf(cmd)
	if err != nil {
		return nil, err
	}
	if len(resources) > 0 || len(f.Resources) == 0 || through != nil { // serve reaches every known provider
		f.AddPresets()
	}
	at, err := placeOf(cmd, f)
	if err != nil {
		return nil, err
	}
	var missing error
	if len(resources) > 0 {
		if missing = keepOnly(f, resources, configName(cmd, nil)); missing != nil && !how.ReadOnly {
			return nil, missing
		}
	}
	c, err := f.GateConfig(time.Now())
	if err != nil {
		return nil, &failure{code: exitConfig, message: err.Error(), hint: "docs/configuration.md describes every field"}
	}
	s := &session{file: f, configFile: absolute(configName(cmd, nil)), dir: at.dir, label: at.label(), log: eventlog.OpenFor(at.dir, at.label()), limits: map[string][]sluice.Limit{}, stderr: cmd.ErrOrStderr(), notes: notesOf(cmd)}
	for name, r := range c.Resources {
		s.limits[name] = r.Limits
	}
	c.Store, c.Events, c.ReadOnly, c.OneShot, c.Provider = at.url, s.log.Add, how.ReadOnly, how.OneShot, f.ProviderOf
	if how.ReadOnly && (len(resources) == 0 || missing != nil) { // the store may have pools that the configuration does not name
		c.Others = func(pool string) string {
			switch {
			case len(resources) == 0 || slices.Contains(resources, pool):
				return pool
			case slices.Contains(resources, pool+inspect.GatePool):
				return pool + inspect.GatePool
			}
			return ""
		}
	}
	if how.Events != nil { // another receiver gets the events too
		c.Events = func(e inspect.Event) {
			s.log.Add(e)
			how.Events(e)
		}
	}
	if err := s.tell(&c); err != nil {
		return nil, err
	}
	s.url, s.config = at.url, sluice.Config{Store: c.Store, Events: c.Events, Alert: c.Alert}
	url := c.Store
	if how.Store != "" && at.isMissing() { // messages still name the directory
		url, through, s.empty = how.Store, func(st store.Store) store.Store { return st }, true
	}
	if s.gate, err = s.openGate(cmd.Context(), c, url, through); errors.Is(err, store.ErrUnavailable) && onlyObserves(&c) {
		s.notes.Warn(err.Error() + "; requests are sent without waiting, and this process counts only its own")
		c.Store = "mem:"
		s.gate, err = s.openGate(cmd.Context(), c, c.Store, through)
	}
	if err != nil {
		s.endTelling()
		_ = s.log.Close() // the log is empty
		failed := at.openFailure(err)
		if upstream.OutOfFiles(err) {
			failed = tooFewFiles(failed, len(c.Resources))
		}
		return nil, failed
	}
	s.store = s.gate.Store()
	maps.Copy(s.limits, inside.Of(s.gate).Others())
	for _, name := range resources {
		if _, ok := s.limits[name]; !ok {
			return nil, errors.Join(missing, s.close())
		}
	}
	if len(resources) == 0 {
		for _, why := range inside.Of(s.gate).Skipped() {
			s.notes.Warn("not shown: " + why)
		}
	}
	return s, nil
}

// ours returns the labels of the events that belong to the session's store.
func (s *session) ours() []string {
	list := []string{s.label}
	if more := s.clients.Load(); more != nil {
		list = append(list, *more...)
	}
	return list
}

// absolute returns the full path, because its reader may be in another directory.
func absolute(path string) string {
	if path == "" {
		return ""
	}
	if full, err := filepath.Abs(path); err == nil {
		return full
	}
	return path
}

// onlyObserves reports whether every resource is in the mode observe.
func onlyObserves(c *sluice.Config) bool {
	for name := range c.Resources {
		if !c.Resources[name].Observe {
			return false
		}
	}
	return len(c.Resources) > 0
}

// openGate opens the gate on the store at url. If through is not nil, it wraps the store, which c.Store then only names.
func (s *session) openGate(ctx context.Context, c sluice.Config, url string, through func(store.Store) store.Store) (*sluice.Gate, error) {
	if through == nil {
		return sluice.Open(ctx, c)
	}
	st, err := openStore(ctx, url)
	if err != nil {
		return nil, err
	}
	st = through(st)
	g, err := sluice.OpenWithStore(ctx, st, c)
	if err != nil {
		return nil, errors.Join(err, st.Close())
	}
	s.held = st
	return g, nil
}

// openFailure is fail for a gate that does not open: invalid then means the configuration, or the address of the store.
func (at stateHome) openFailure(err error) error {
	f := asFailure(fail(err))
	switch {
	case errors.Is(err, sluice.ErrInvalid):
		f.code, f.hint = exitConfig, cmp.Or(f.hint, "docs/configuration.md describes every field")
	case errors.Is(err, sluice.ErrStore) && !errors.Is(err, store.ErrUnavailable): // the store was not even contacted
		f.code, f.message, f.hint = at.code, at.whose+": "+f.message, cmp.Or(f.hint, at.hint())
	}
	return f
}

// hint says where such addresses are documented.
func (at stateHome) hint() string {
	if strings.HasPrefix(at.url, "http") {
		return storeHint
	}
	return "docs/redis.md describes every part of such a URL"
}

// keepOnly leaves only the named resources in f. selected is the file that f comes from, if any. The error is about the
// first name that f does not have.
func keepOnly(f *config.File, names []string, selected string) (missing error) {
	known := slices.Sorted(maps.Keys(f.Resources))
	for _, name := range names {
		if _, ok := f.Resources[name]; !ok && missing == nil {
			missing = &failure{
				code: exitUsage, message: fmt.Sprintf("unknown resource %.80q", name),
				hint: didYouMean(name, known, fmt.Sprintf("known are %s; %s", strings.Join(known, ", "), othersHint(selected))),
			}
		}
	}
	maps.DeleteFunc(f.Resources, func(name string, _ config.Resource) bool { return !slices.Contains(names, name) })
	return missing
}

// close ends the session. Events that could not be recorded cause a warning, not an error.
func (s *session) close() error {
	s.letters.Flush() // pending letters still emit events
	err := s.gate.Close()
	if s.held != nil {
		err = errors.Join(err, s.held.Close())
	}
	s.endTelling()
	if lost := s.log.Close(); lost != nil {
		s.notes.Warn("events are not recorded: " + lost.Error())
	}
	if err != nil {
		return fail(err)
	}
	return nil
}

// closing is close for use with defer: it keeps an earlier error.
func (s *session) closing(err *error) {
	if late := s.close(); *err == nil {
		*err = late
	}
}

// answer reads a response in the dialect of a resource.
func (s *session) answer(resource string, r *provider.Response) (sluice.Answer, provider.Observation) {
	o := s.file.Dialect(resource).Observe(r, time.Now())
	a := o.Answer(s.limits[resource])
	a.Status = r.Status
	return a, o
}

// className returns the class to show: an agent without a class is in the lowest.
func (s *session) className(class string) string {
	return cmp.Or(class, s.file.Classes[len(s.file.Classes)-1].Name)
}

// identity is the agent that a command acts for.
type identity struct {
	agent string
	class string // neither given nor configured if empty, which means the lowest
	user  string
}

// addIdentity adds the flags that name the agent.
func addIdentity(cmd *cobra.Command) {
	cmd.Flags().String("agent", "", "agent `NAME`; else SLUICE_AGENT, else the login name")
	cmd.Flags().String("class", "", "priority `CLASS`, such as p0, p1 or p2; else the configured one, else the lowest")
	cmd.Flags().String("user", "", "user `NAME` of the agent; else the configured one")
	completeFlag(cmd, "agent", completeAgents)
	completeFlag(cmd, "class", completeClasses)
}

// identityOf returns the agent that the flags and the configuration name.
func identityOf(cmd *cobra.Command, s *session) (identity, error) {
	var id identity
	id.agent, _ = cmd.Flags().GetString("agent")
	id.class, _ = cmd.Flags().GetString("class")
	id.user, _ = cmd.Flags().GetString("user")
	if id.agent == "" && cmd.Flags().Changed("agent") {
		return id, &failure{code: exitUsage, message: "--agent is empty", hint: "give a name, or leave the flag out"}
	}
	id.agent = cmp.Or(id.agent, os.Getenv("SLUICE_AGENT"), loginName())
	known, ok := s.file.Agents[id.agent]
	if !ok {
		known = s.file.Agents["*"]
	}
	id.class, id.user = cmp.Or(id.class, known.Class), cmp.Or(id.user, known.User)
	if id.class != "" {
		if err := checkClass(s.file, id.class); err != nil {
			return id, err
		}
	}
	inherit(cmd, &id)
	return id, nil
}

// loginName returns the name of the current user, without a domain.
func loginName() string {
	name := ""
	if u, err := user.Current(); err == nil {
		name = u.Username[strings.LastIndexByte(u.Username, '\\')+1:]
	}
	return cmp.Or(name, os.Getenv("USER"), os.Getenv("LOGNAME"), "unknown")
}

// openStore opens the store at a URL.
func openStore(ctx context.Context, url string) (store.Store, error) {
	st, err := store.Open(ctx, url)
	if err != nil {
		return nil, &sluice.Error{Err: errors.Join(sluice.ErrStore, err), Message: err.Error()}
	}
	return st, nil
}
