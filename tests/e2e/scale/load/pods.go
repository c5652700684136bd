// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"encoding/json"
	"fmt"
	"net/url"
	"os"
	"sort"
	"sync"
	"time"
)

type pod struct {
	Metadata struct{ Name string }
	Spec     struct {
		SchedulingGates []struct{ Name string }
	}
}

const warmGate = "cachewarm.io/wait-for-cache"

func (p pod) has(gate string) bool {
	for _, each := range p.Spec.SchedulingGates {
		if each.Name == gate {
			return true
		}
	}
	return false
}

func (a access) pods() string {
	return "/api/v1/namespaces/" + *a.namespace + "/pods"
}

// Prints {"ready": T} once `count` pods are seen to be gated, and {"gone": [T...]} when they are
// not any more.
func gates(arguments []string) error {
	flags, access := newFlags("gates")
	selector := flags.String("selector", "", "labels of the pods")
	gate := flags.String("gate", warmGate, "which gate")
	count := flags.Int("count", 200, "how many pods")
	limit := flags.Duration("limit", 5*time.Minute, "when to give up")
	if err := flags.Parse(arguments); err != nil {
		return err
	}
	c, err := access.connect(0, true)
	if err != nil {
		return err
	}
	ctx, stop := context.WithTimeout(context.Background(), *limit)
	defer stop()
	held, gone := map[string]bool{}, []float64{}
	complete := false
	err = follow(ctx, c, access.pods(), url.Values{"labelSelector": {*selector}},
		func(_ string, p pod) {
			name := p.Metadata.Name
			if p.has(*gate) {
				held[name] = true
			} else if held[name] {
				delete(held, name)
				gone = append(gone, now())
			}
			if !complete && len(held) == *count {
				complete = true
				printResult(object{"ready": now()})
			}
			if complete && len(held) == 0 {
				stop()
			}
		})
	if err == nil && (!complete || len(held) > 0) {
		err = fmt.Errorf("%d of %d pods are held, %d were released", len(held), *count, len(gone))
	}
	if err == nil {
		printResult(object{"gone": gone})
	}
	return err
}

// Prints how long it took from the first request to the last answer.
func patch(arguments []string) error {
	flags, access := newFlags("patch")
	selector := flags.String("selector", "", "labels of the pods")
	gate := flags.String("gate", "", "which gate, the first of each pod")
	width := flags.Int("width", 32, "requests at a time")
	h1 := flags.Bool("h1", false, "over as many connections of HTTP/1.1 and not over one of HTTP/2")
	if err := flags.Parse(arguments); err != nil {
		return err
	}
	connections := 0
	if *h1 {
		connections = *width
	}
	c, err := access.connect(connections, true)
	if err != nil {
		return err
	}
	names := make(chan string, 1<<16)
	query := url.Values{"labelSelector": {*selector}}
	_, err = list(c, access.pods(), query, func(p pod) { names <- p.Metadata.Name })
	if err != nil {
		return err
	}
	close(names)
	// Same changes as the operator's patch, in as many operations.
	change := []object{
		{"op": "test", "path": "/spec/schedulingGates/0/name", "value": *gate},
		{"op": "remove", "path": "/spec/schedulingGates/0"},
		{"op": "add", "path": "/metadata/annotations/example.com~1released", "value": "Warm"},
		{"op": "add", "path": "/metadata/annotations/example.com~1held-seconds", "value": "12.5"},
	}
	failures := make(chan error, *width)
	begin, patched := now(), len(names)
	var group sync.WaitGroup
	for range *width {
		group.Go(func() {
			for name := range names {
				path := access.pods() + "/" + name + "?fieldManager=bare"
				if err := c.do("PATCH", path, "application/json-patch+json", change, nil); err != nil {
					failures <- err
					return
				}
			}
		})
	}
	group.Wait()
	if len(failures) > 0 {
		return <-failures
	}
	printResult(object{"began": begin, "seconds": now() - begin, "patched": patched})
	return nil
}

// Creates the pod of stdin under `count` names, as dry runs, and prints the median and the 99th
// percentile of the times: a dry run is admitted, defaulted and validated and not stored.
func create(arguments []string) error {
	flags, access := newFlags("create")
	count := flags.Int("count", 500, "how many")
	if err := flags.Parse(arguments); err != nil {
		return err
	}
	c, err := access.connect(0, true)
	if err != nil {
		return err
	}
	var thing object
	if err := json.NewDecoder(os.Stdin).Decode(&thing); err != nil {
		return err
	}
	took := make([]float64, 0, *count)
	for range *count {
		begin := time.Now()
		if err := c.do("POST", access.pods()+"?dryRun=All", "application/json", thing, nil); err != nil {
			return err
		}
		took = append(took, time.Since(begin).Seconds())
	}
	sort.Float64s(took)
	printResult(object{"median": took[len(took)/2], "p99": took[len(took)*99/100]})
	return nil
}
