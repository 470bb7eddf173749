package redisfault

import (
	"strings"
	"testing"
)

func TestJudgeAnswer(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]Fault{
		"LOADING Redis is loading the dataset in memory":                                                     NotRun,
		"READONLY You can't write against a read only replica.":                                              NotRun,
		"READONLY You can't write against a read only replica. script: 2f, on @user_script:1.":               NotRun,
		"OOM command not allowed when used memory > 'maxmemory'.":                                            NotRun,
		"ERR Error running script (call to f_2f): @user_script:1: @user_script: 1: -OOM command not allowed": NotRun,
		"ERR Error running script (call to f_2f): @user_script:1: user_script:1: boom":                       Script,
		"MOVED 1 127.0.0.1:1": NotRun,
		"ASK 1 127.0.0.1:1":   NotRun,
		"TRYAGAIN Multiple keys request during rehashing of slot":            NotRun,
		"CLUSTERDOWN The cluster is down":                                    NotRun,
		"MASTERDOWN Link with MASTER is down":                                NotRun,
		"NOREPLICAS Not enough good replicas to write.":                      NotRun,
		"MISCONF Redis is configured to save RDB snapshots":                  NotRun,
		"BUSY Redis is busy running a script.":                               NotRun,
		"ERR max number of clients reached":                                  NotRun,
		"BUSYKEY Target key name already exists.":                            Script,
		"NOAUTH Authentication required.":                                    Unfit,
		"WRONGPASS invalid username-password pair or user is disabled.":      Unfit,
		"NOPERM this user has no permissions to run the 'evalsha' command":   Unfit,
		"ERR The user executing the script can't run this command script: 1": Unfit,
		"ERR ACL failure in script: User a has no permissions to run 'set'":  Unfit,
		"ERR unknown command 'EVALSHA', with args beginning with: 'a'":       Unfit,
		"DENIED Redis is running in protected mode":                          Unfit,
		"NOPROTO sorry":                                                     Unfit,
		"ERR DB index is out of range":                                      Unfit,
		"ERR Could not find scripting engine 'lua'":                         Unfit,
		"WRONGTYPE Operation against a key holding the wrong kind of value": Script,
		"ERR user_script:1: boom":                                           Script,
		"":                                                                  Script,
	} {
		v := judgeAnswer(text)
		if v.Fault != want || v.What == "" {
			t.Errorf("%s: %v, %q", text, v.Fault, v.What)
		}
		if v.Full != strings.Contains(text, "OOM") {
			t.Errorf("%s: full is %v", text, v.Full)
		}
		if want != Script && v.Hint == "" {
			t.Errorf("%s: no hint", text)
		}
	}
}
