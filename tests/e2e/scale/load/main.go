// SPDX-License-Identifier: Apache-2.0

// Load for the tests of scale, with the standard library alone.
//
//	load agents -prefix fake- [-hold FILE]   plays the agents of the kwok nodes; prints when bundles
//	                                         were first active after FILE was removed
//	load gates -selector app=x -count 200    prints when each gate of these pods was seen to go
//	load patch -selector app=y -gate NAME    takes a gate from each of these pods, as fast as it can
//	load create -count N < pod.json          times the creation of pods, one after the other
//
// All take -server, -ca, -cert, -key: the API server and an administrator's certificate. What is
// measured is printed as one JSON object on stdout; times are seconds since 1970.
package main

import (
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"time"
)

func now() float64 {
	return float64(time.Now().UnixNano()) / 1e9
}

func printResult(result any) {
	if err := json.NewEncoder(os.Stdout).Encode(result); err != nil {
		fail(err)
	}
}

func fail(err error) {
	fmt.Fprintln(os.Stderr, "load:", err)
	os.Exit(1)
}

func main() {
	verbs := map[string]func([]string) error{
		"agents": agents, "gates": gates, "patch": patch, "create": create,
	}
	if len(os.Args) < 2 || verbs[os.Args[1]] == nil {
		fail(fmt.Errorf("expected agents, gates, patch or create"))
	}
	if err := verbs[os.Args[1]](os.Args[2:]); err != nil {
		fail(err)
	}
}

// Flags that all verbs have.
type access struct {
	server, ca, cert, key *string
	namespace             *string
}

func newFlags(verb string) (*flag.FlagSet, access) {
	flags := flag.NewFlagSet(verb, flag.ExitOnError)
	return flags, access{
		server:    flags.String("server", "", "URL of the API server"),
		ca:        flags.String("ca", "", "PEM file"),
		cert:      flags.String("cert", "", "PEM file"),
		key:       flags.String("key", "", "PEM file"),
		namespace: flags.String("namespace", "default", "of the pods"),
	}
}
