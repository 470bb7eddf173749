package link

import "context"

// RunKeys is Run with several keys.
func (l *Link) RunKeys(ctx context.Context, s *Script, keys []string, args ...string) (string, error) {
	f := &s.text
	if !l.server.seven() {
		f = &s.old
	}
	reply, err := l.call(ctx, l.client.B().Evalsha().Sha1(f.sha).Numkeys(int64(len(keys))).Key(keys...).Arg(args...).Build())
	if unknownScript(err) {
		reply, err = l.call(ctx, l.client.B().Eval().Script(f.source).Numkeys(int64(len(keys))).Key(keys...).Arg(args...).Build())
	}
	if err != nil {
		return "", l.fail(err)
	}
	return reply, nil
}
