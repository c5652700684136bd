// SPDX-License-Identifier: Apache-2.0

package main

import (
	"flag"
	"fmt"
	"net/url"
	"os"
	"os/signal"
	"syscall"

	"go.etcd.io/etcd/server/v3/embed"
)

// runEtcd serves one embedded etcd until SIGTERM. It never syncs to disk: the cluster is for tests, and
// a crash of the machine may cost it its state.
func runEtcd() error {
	flags := flag.NewFlagSet("etcd", flag.ExitOnError)
	dir := flags.String("data-dir", "", "directory of the database")
	client := flags.String("client-url", "http://127.0.0.1:2379", "where clients connect")
	peer := flags.String("peer-url", "http://127.0.0.1:2380", "where peers would connect")
	if err := flags.Parse(os.Args[1:]); err != nil {
		return err
	}
	clientURL, err := url.Parse(*client)
	if err != nil {
		return fmt.Errorf("--client-url: %w", err)
	}
	peerURL, err := url.Parse(*peer)
	if err != nil {
		return fmt.Errorf("--peer-url: %w", err)
	}
	config := embed.NewConfig()
	config.Dir = *dir
	config.ListenClientUrls = []url.URL{*clientURL}
	config.AdvertiseClientUrls = []url.URL{*clientURL}
	config.ListenPeerUrls = []url.URL{*peerURL}
	config.AdvertisePeerUrls = []url.URL{*peerURL}
	config.InitialCluster = config.InitialClusterFromName(config.Name)
	config.UnsafeNoFsync = true
	config.LogLevel = "error"
	server, err := embed.StartEtcd(config)
	if err != nil {
		return err
	}
	stop := make(chan os.Signal, 1)
	signal.Notify(stop, syscall.SIGINT, syscall.SIGTERM)
	select {
	case <-stop:
		server.Close()
		return nil
	case err := <-server.Err():
		return err
	}
}
