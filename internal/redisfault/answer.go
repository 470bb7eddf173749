package redisfault

import "strings"

// answers are the error replies of a server, by their first word.
//
// NotRun means that nothing was changed, even if a command inside a script got the error: a server raises these only
// at the first write of a script, and lets a script finish once it has written something.
var answers = map[string]Diagnosis{
	"LOADING":     {Fault: NotRun, What: "Redis is loading its data", Hint: "it serves when that is done"},
	"READONLY":    {Fault: NotRun, What: "this Redis is a replica and takes no writes", Hint: "a failover is followed with redis+sentinel:// and redis+cluster://; with redis:// give the master's address"},
	"MASTERDOWN":  {Fault: NotRun, What: "this Redis is a replica that has lost its master", Hint: "a failover is followed with redis+sentinel:// and redis+cluster://; with redis:// give the master's address"},
	"CLUSTERDOWN": {Fault: NotRun, What: "the Redis cluster is down or lacks a part of its slots", Hint: "a failover takes some seconds; if it lasts, see CLUSTER INFO"},
	"TRYAGAIN":    {Fault: NotRun, What: "the key's slot is on its way to another node of the cluster", Hint: "it is over in a moment"},
	"MOVED":       {Fault: NotRun, What: "the key is on another node of the cluster", Hint: "use redis+cluster:// for a cluster"},
	"ASK":         {Fault: NotRun, What: "the key's slot is on its way to another node of the cluster", Hint: "use redis+cluster:// for a cluster"},
	"REDIRECT":    {Fault: NotRun, What: "this server hands over to another", Hint: "it is over in a moment"},
	"NOREPLICAS":  {Fault: NotRun, What: "Redis has fewer replicas than its min-replicas-to-write asks for", Hint: "bring the replicas back, or lower that setting"},
	"OOM":         {Fault: NotRun, Full: true, What: "Redis is out of memory (maxmemory)", Hint: "raise maxmemory, or remove what else it holds; Sluice's keys need a policy that does not evict them, such as noeviction"},
	"MISCONF":     {Fault: NotRun, What: "Redis takes no writes because it cannot save its data", Hint: "see its log: most often the disk is full"},
	"BUSY":        {Fault: NotRun, What: "Redis is busy with somebody's long script", Hint: "SCRIPT KILL ends it if it has written nothing"},
	"NOAUTH":      {Fault: Unfit, What: "Redis wants a password", Hint: "give it as redis://user:PASSWORD@host"},
	"WRONGPASS":   {Fault: Unfit, What: "Redis does not accept this user and password", Hint: "correct them in redis://user:PASSWORD@host; a character that divides the parts of a URL is written %XX"},
	"DENIED":      {Fault: Unfit, What: "Redis is in protected mode and serves only its own machine", Hint: "set a password on it, or bind it to a private network and set protected-mode no"},
	"NOPROTO":     {Fault: Unfit, What: "this server does not speak Redis' protocol 3", Hint: "use Redis " + Oldest + " or later"},
}

// Oldest is the oldest supported version.
const Oldest = "6.2"

type phrase struct {
	begins string
	Diagnosis
}

// phrases are error replies without a distinct first word.
var phrases = []phrase{
	{"max number of clients", Diagnosis{Fault: NotRun, What: "Redis has as many clients as it may (maxclients)", Hint: "raise maxclients, or close what is not used"}},
	{"AUTH <password> called without", Diagnosis{Fault: Unfit, What: "this Redis has no password, but one was given", Hint: "leave it out, or set one with requirepass"}},
	{"Client sent AUTH", Diagnosis{Fault: Unfit, What: "this Redis has no password, but one was given", Hint: "leave it out, or set one with requirepass"}},
	{"invalid password", Diagnosis{Fault: Unfit, What: "Redis does not accept this password", Hint: "correct it in redis://:PASSWORD@host"}},
	{"DB index is out of range", Diagnosis{Fault: Unfit, What: "this Redis has no database of that number", Hint: "choose a lower one, or raise databases in its configuration"}},
	{"SELECT is not allowed in cluster mode", Diagnosis{Fault: Unfit, What: "a cluster has only database 0", Hint: "use redis+cluster:// without a database"}},
	{"This instance has cluster support disabled", Diagnosis{Fault: Unfit, What: "this Redis is not part of a cluster", Hint: "use redis:// for a single server"}},
	{"No such master with that name", Diagnosis{Fault: Unfit, What: "the sentinels watch no master of that name", Hint: "it is the word in `sentinel monitor NAME ...`: redis+sentinel://host/NAME"}},
	{"Could not find scripting engine", NoLua},
}

const rightsHint = "give the user what Sluice needs: ACL SETUSER name ~PREFIX:* &PREFIX:* +@all -@dangerous"

// NoLua is the diagnosis of a server without Lua.
var NoLua = Diagnosis{Fault: Unfit, What: "this server has no Lua scripting", Hint: "install the package that adds it (for Valkey its Lua module, which some distributions package apart), or use Redis"}

// judgeAnswer classifies an error reply.
func judgeAnswer(text string) Diagnosis {
	text = inner(strings.TrimPrefix(text, "ERR ")) // rueidis usually removes the prefix
	word, _, _ := strings.Cut(text, " ")
	if v, ok := answers[word]; ok {
		return v
	}
	if word == "NOPERM" || strings.Contains(text, "user executing the script can't") || strings.Contains(text, "ACL failure in script") {
		text, _, _ = strings.Cut(text, " script: ") // the position in the script follows
		return Diagnosis{Fault: Unfit, What: "Redis refuses this to its user", Hint: rightsHint, Detail: text}
	}
	for _, p := range phrases {
		if len(text) >= len(p.begins) && strings.EqualFold(text[:len(p.begins)], p.begins) {
			return p.Diagnosis
		}
	}
	if command, ok := strings.CutPrefix(text, "unknown command "); ok {
		command, _, _ = strings.Cut(command, ",") // its arguments follow
		if strings.Trim(command, "'`\"") == "SENTINEL" {
			return Diagnosis{Fault: Unfit, What: "this server is not a Sentinel", Hint: "give the address of a Sentinel, usually port 26379, or use redis:// for the server itself"}
		}
		return Diagnosis{Fault: Unfit, What: "this server lacks a command", Detail: command, Hint: "use Redis " + Oldest + " or later, or Valkey"}
	}
	return Diagnosis{Fault: Script, What: "the script failed", Detail: text}
}

// inner returns the error of a command inside a script. Redis 7 reports that error as it is. Older versions put it at the
// end of the script's error: "Error running script (call to f_...): @user_script:1: @user_script: 1: -OOM command not
// allowed ...".
func inner(text string) string {
	if !strings.HasPrefix(text, "Error running script") {
		return text
	}
	if i := strings.LastIndex(text, ": -"); i >= 0 {
		return strings.TrimPrefix(text[i+len(": -"):], "ERR ")
	}
	return text
}
