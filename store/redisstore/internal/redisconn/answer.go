package redisconn

import "strings"

// answers are the error replies of a server, by their first word.
//
// FaultNotRun means that nothing was changed, even if a command inside a script got the error: a server raises these only
// at the first write of a script, and lets a script finish once it has written something.
var answers = map[string]diagnosis{
	"LOADING":     {fault: FaultNotRun, what: "Redis is loading its data", hint: "it serves when that is done"},
	"READONLY":    {fault: FaultNotRun, what: "this Redis is a replica and takes no writes", hint: "a failover is followed with redis+sentinel:// and redis+cluster://; with redis:// give the master's address"},
	"MASTERDOWN":  {fault: FaultNotRun, what: "this Redis is a replica that has lost its master", hint: "a failover is followed with redis+sentinel:// and redis+cluster://; with redis:// give the master's address"},
	"CLUSTERDOWN": {fault: FaultNotRun, what: "the Redis cluster is down or lacks a part of its slots", hint: "a failover takes some seconds; if it lasts, see CLUSTER INFO"},
	"TRYAGAIN":    {fault: FaultNotRun, what: "the key's slot is on its way to another node of the cluster", hint: "it is over in a moment"},
	"MOVED":       {fault: FaultNotRun, what: "the key is on another node of the cluster", hint: "use redis+cluster:// for a cluster"},
	"ASK":         {fault: FaultNotRun, what: "the key's slot is on its way to another node of the cluster", hint: "use redis+cluster:// for a cluster"},
	"REDIRECT":    {fault: FaultNotRun, what: "this server hands over to another", hint: "it is over in a moment"},
	"NOREPLICAS":  {fault: FaultNotRun, what: "Redis has fewer replicas than its min-replicas-to-write asks for", hint: "bring the replicas back, or lower that setting"},
	"OOM":         {fault: FaultNotRun, what: "Redis is out of memory (maxmemory)", hint: "raise maxmemory, or remove what else it holds; Sluice's keys need a policy that does not evict them, such as noeviction"},
	"MISCONF":     {fault: FaultNotRun, what: "Redis takes no writes because it cannot save its data", hint: "see its log: most often the disk is full"},
	"BUSY":        {fault: FaultNotRun, what: "Redis is busy with somebody's long script", hint: "SCRIPT KILL ends it if it has written nothing"},
	"NOAUTH":      {fault: FaultUnfit, what: "Redis wants a password", hint: "give it as redis://user:PASSWORD@host"},
	"WRONGPASS":   {fault: FaultUnfit, what: "Redis does not accept this user and password", hint: "correct them in redis://user:PASSWORD@host; a character that divides the parts of a URL is written %XX"},
	"DENIED":      {fault: FaultUnfit, what: "Redis is in protected mode and serves only its own machine", hint: "set a password on it, or bind it to a private network and set protected-mode no"},
	"NOPROTO":     {fault: FaultUnfit, what: "this server does not speak Redis' protocol 3", hint: "use Redis " + oldest + " or later"},
}

type phrase struct {
	begins string
	diagnosis
}

// phrases are error replies without a distinct first word.
var phrases = []phrase{
	{"max number of clients", diagnosis{fault: FaultNotRun, what: "Redis has as many clients as it may (maxclients)", hint: "raise maxclients, or close what is not used"}},
	{"AUTH <password> called without", diagnosis{fault: FaultUnfit, what: "this Redis has no password, but one was given", hint: "leave it out, or set one with requirepass"}},
	{"Client sent AUTH", diagnosis{fault: FaultUnfit, what: "this Redis has no password, but one was given", hint: "leave it out, or set one with requirepass"}},
	{"invalid password", diagnosis{fault: FaultUnfit, what: "Redis does not accept this password", hint: "correct it in redis://:PASSWORD@host"}},
	{"DB index is out of range", diagnosis{fault: FaultUnfit, what: "this Redis has no database of that number", hint: "choose a lower one, or raise databases in its configuration"}},
	{"SELECT is not allowed in cluster mode", diagnosis{fault: FaultUnfit, what: "a cluster has only database 0", hint: "use redis+cluster:// without a database"}},
	{"This instance has cluster support disabled", diagnosis{fault: FaultUnfit, what: "this Redis is not part of a cluster", hint: "use redis:// for a single server"}},
	{"No such master with that name", diagnosis{fault: FaultUnfit, what: "the sentinels watch no master of that name", hint: "it is the word in `sentinel monitor NAME ...`: redis+sentinel://host/NAME"}},
	{"Could not find scripting engine", noLua},
}

const rightsHint = "give the user what Sluice needs: ACL SETUSER name ~PREFIX:* &PREFIX:* +@all -@dangerous"

var noLua = diagnosis{fault: FaultUnfit, what: "this server has no Lua scripting", hint: "install the package that adds it (for Valkey its Lua module, which some distributions package apart), or use Redis"}

// judgeAnswer classifies an error reply.
func judgeAnswer(text string) diagnosis {
	text = inner(strings.TrimPrefix(text, "ERR ")) // rueidis usually removes the prefix
	word, _, _ := strings.Cut(text, " ")
	if v, ok := answers[word]; ok {
		return v
	}
	if word == "NOPERM" || strings.Contains(text, "user executing the script can't") || strings.Contains(text, "ACL failure in script") {
		text, _, _ = strings.Cut(text, " script: ") // the position in the script follows
		return diagnosis{fault: FaultUnfit, what: "Redis refuses this to its user", hint: rightsHint, detail: text}
	}
	for _, p := range phrases {
		if len(text) >= len(p.begins) && strings.EqualFold(text[:len(p.begins)], p.begins) {
			return p.diagnosis
		}
	}
	if command, ok := strings.CutPrefix(text, "unknown command "); ok {
		command, _, _ = strings.Cut(command, ",") // its arguments follow
		if strings.Trim(command, "'`\"") == "SENTINEL" {
			return diagnosis{fault: FaultUnfit, what: "this server is not a Sentinel", hint: "give the address of a Sentinel, usually port 26379, or use redis:// for the server itself"}
		}
		return diagnosis{fault: FaultUnfit, what: "this server lacks a command", detail: command, hint: "use Redis " + oldest + " or later, or Valkey"}
	}
	return diagnosis{fault: FaultScript, what: "the script failed", detail: text}
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
