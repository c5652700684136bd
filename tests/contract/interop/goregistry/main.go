// SPDX-License-Identifier: Apache-2.0

// Command goregistry runs go-containerregistry's in-memory registry, which has the referrers API
// (distribution 2.8 and 3 lack it). Usage: goregistry serve CONFIG; it listens on the "addr:" of CONFIG,
// a configuration of distribution.
package main

import (
	"io"
	"log"
	"net"
	"net/http"
	"os"
	"regexp"

	"github.com/google/go-containerregistry/pkg/registry"
)

func main() {
	if len(os.Args) != 3 || os.Args[1] != "serve" {
		log.Fatal("usage: goregistry serve CONFIG")
	}
	config, err := os.ReadFile(os.Args[2])
	if err != nil {
		log.Fatal(err)
	}
	found := regexp.MustCompile(`addr"?: "?([0-9.]+:[0-9]+)`).FindSubmatch(config)
	if found == nil {
		log.Fatal("CONFIG has no addr: ADDRESS:PORT")
	}
	listener, err := net.Listen("tcp", string(found[1]))
	if err != nil {
		log.Fatal(err)
	}
	quiet := registry.Logger(log.New(io.Discard, "", 0))
	log.Fatal(http.Serve(listener, registry.New(registry.WithReferrersSupport(true), quiet)))
}
