// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"hash/fnv"
	"net/url"
	"os"
	"os/signal"
	"reflect"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"
)

const (
	nodeCaches  = "/apis/cachewarm.io/v1alpha1/nodecaches"
	gpuType     = "nvidia/h100-80gb-hbm3/sm_90"
	cpuClass    = "x86-64-v4/amd-25-17/5c0d9f21"
	applyPatch  = "application/apply-patch+yaml"
	tokenPath   = "/api/v1/namespaces/cachewarm-system/serviceaccounts/cachewarm-agent/token"
	bundleBytes = 1 << 28
)

// The fields that are read of a NodeCache: crds/nodecaches.yaml.
type nodeCache struct {
	Metadata struct{ Name string }
	Spec     struct {
		Warmups []struct {
			UID     string
			RunAs   []string
			Bundles []struct{ Digest string }
		}
		Captures []struct{ ID, Key, ReadyTime string }
		Starts   []struct{ PodUID, ReadyTime string }
	}
}

type object = map[string]any

// One node: the spec that its agent read last, and the status that it wrote.
type node struct {
	name    string
	client  *client
	mutex   sync.Mutex // of the three below
	desired nodeCache
	said    object
	queued  bool
	writer  sync.Mutex // one writes at a time
}

type fleet struct {
	admin  *client
	agent  *client // without a certificate: the token identifies the node
	held   atomic.Bool
	nodes  sync.Map // name → *node
	work   chan *node
	opened atomic.Bool // the next write is the first that says Active again
	writes atomic.Int64
	failed atomic.Int64
}

func agents(arguments []string) error {
	flags, access := newFlags("agents")
	prefix := flags.String("prefix", "fake-", "of the names of the nodes")
	hold := flags.String("hold", "", "while this file is there, bundles are fetched and never active")
	workers := flags.Int("workers", 32, "writes at a time")
	if err := flags.Parse(arguments); err != nil {
		return err
	}
	admin, err := access.connect(0, true)
	if err != nil {
		return err
	}
	agent, err := access.connect(0, false)
	if err != nil {
		return err
	}
	f := &fleet{admin: admin, agent: agent, work: make(chan *node, 1<<16)}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	f.held.Store(exists(*hold))
	for range *workers {
		go f.write()
	}
	go f.watchHold(ctx, *hold)
	err = follow(ctx, admin, nodeCaches, url.Values{}, func(kind string, desired nodeCache) {
		if kind != "DELETED" && strings.HasPrefix(desired.Metadata.Name, *prefix) {
			f.take(desired)
		}
	})
	printResult(object{"writes": f.writes.Load(), "failed": f.failed.Load()})
	return err
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return path != "" && err == nil
}

func (f *fleet) watchHold(ctx context.Context, path string) {
	for ; ctx.Err() == nil; time.Sleep(2 * time.Millisecond) {
		if held := exists(path); held != f.held.Swap(held) {
			f.opened.Store(!held)
			f.nodes.Range(func(_, each any) bool {
				f.queue(each.(*node))
				return true
			})
		}
	}
}

func (f *fleet) take(desired nodeCache) {
	found, _ := f.nodes.LoadOrStore(desired.Metadata.Name, &node{name: desired.Metadata.Name})
	n := found.(*node)
	n.mutex.Lock()
	n.desired = desired
	n.mutex.Unlock()
	f.queue(n)
}

func (f *fleet) queue(n *node) {
	n.mutex.Lock()
	defer n.mutex.Unlock()
	if !n.queued {
		n.queued = true
		f.work <- n
	}
}

func (f *fleet) write() {
	for n := range f.work {
		n.writer.Lock()
		if err := f.update(n); err != nil {
			if f.failed.Add(1) < 5 {
				fmt.Fprintln(os.Stderr, "load:", err)
			}
			time.AfterFunc(time.Second, func() { f.queue(n) })
		}
		n.writer.Unlock()
	}
}

// Writes a changed status. Reports the first bundle that is Active after the file is gone.
func (f *fleet) update(n *node) error {
	n.mutex.Lock()
	n.queued = false
	says := n.says(f.held.Load())
	changed := !reflect.DeepEqual(says, n.said)
	n.mutex.Unlock()
	if !changed {
		return nil
	}
	if err := f.send(n, says); err != nil {
		return err
	}
	f.writes.Add(1)
	if f.opened.CompareAndSwap(true, false) {
		printResult(object{"active": now()})
	}
	return nil
}

func (f *fleet) send(n *node, says object) error {
	if n.client == nil {
		token, err := f.token(n.name)
		if err != nil {
			return err
		}
		n.client = f.agent.as(token)
	}
	status := object{"heartbeatTime": time.Now().UTC().Format(time.RFC3339)}
	for name, value := range says {
		status[name] = value
	}
	err := n.client.do("PATCH",
		nodeCaches+"/"+n.name+"/status?fieldManager=cachewarm-agent&force=true", applyPatch,
		object{"apiVersion": "cachewarm.io/v1alpha1", "kind": "NodeCache",
			"metadata": object{"name": n.name}, "status": status}, nil)
	if err == nil {
		n.mutex.Lock()
		n.said = says
		n.mutex.Unlock()
	}
	return err
}

// A token as kubelet gets it for an agent's pod: the node is in it, and the policy of NodeCaches
// lets it write that node's status alone.
func (f *fleet) token(name string) (string, error) {
	var owner struct{ Metadata struct{ UID string } }
	if err := f.admin.do("GET", "/api/v1/nodes/"+name, "", nil, &owner); err != nil {
		return "", err
	}
	var answer struct{ Status struct{ Token string } }
	err := f.admin.do("POST", tokenPath, "application/json", object{
		"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest",
		"spec": object{"expirationSeconds": 7200, "boundObjectRef": object{
			"apiVersion": "v1", "kind": "Node", "name": name, "uid": owner.Metadata.UID}},
	}, &answer)
	return answer.Status.Token, err
}

// Returns the status of an agent that has done all that the spec requests, but for held bundles.
func (n *node) says(held bool) object {
	warmups := []object{}
	for _, each := range n.desired.Spec.Warmups {
		bundles := []object{}
		for _, bundle := range each.Bundles {
			bundles = append(bundles, n.bundle(bundle.Digest, held))
		}
		warmups = append(warmups, object{"uid": each.UID, "prepared": each.RunAs,
			"generation": digest(each.UID, each.Bundles)[:16], "bundles": bundles})
	}
	captures := []object{}
	for _, each := range n.desired.Spec.Captures {
		if each.ReadyTime != "" {
			captures = append(captures, object{"id": each.ID, "state": "Pushed",
				"digest": "sha256:" + digest(each.Key), "bytes": bundleBytes, "files": 900,
				"native": false, "compileSeconds": 41.5})
		}
	}
	starts := []object{}
	for _, each := range n.desired.Spec.Starts {
		if each.ReadyTime != "" {
			starts = append(starts, object{"podUID": each.PodUID, "result": "hit", "opened": 800})
		}
	}
	return object{"node": n.facts(), "warmups": warmups, "captures": captures, "starts": starts}
}

func (n *node) facts() object {
	return object{"gpuType": gpuType, "cpuClass": cpuClass, "devices": 8, "driver": "580.65.06",
		"agentVersion": "0.1.0", "root": object{"path": "/var/lib/cachewarm", "writable": true,
			"executable": true, "usedBytes": n.number(1 << 33), "freeBytes": n.number(1 << 40)}}
}

func (n *node) bundle(digest string, held bool) object {
	if held {
		return object{"digest": digest, "state": "Fetching", "bytesDone": 1 << 20}
	}
	// No two nodes take the same time: what is kept of them has nothing in common here.
	return object{"digest": digest, "state": "Active", "bytesDone": bundleBytes,
		"fetchSeconds": 1 + float64(n.number(100000))/1000}
}

func (n *node) number(below uint64) uint64 {
	hash := fnv.New64a()
	hash.Write([]byte(n.name))
	return hash.Sum64() % below
}

func digest(parts ...any) string {
	sum := sha256.Sum256([]byte(fmt.Sprint(parts...)))
	return hex.EncodeToString(sum[:])
}
