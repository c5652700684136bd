package main

import (
	"flag"
	"log"
	"net/url"
	"os"
	"os/signal"
	"syscall"

	"go.etcd.io/etcd/server/v3/embed"
)

func runEtcd() {
	fs := flag.NewFlagSet("etcd", flag.ExitOnError)
	dir := fs.String("data-dir", "", "")
	client := fs.String("client-url", "http://127.0.0.1:2379", "")
	peer := fs.String("peer-url", "http://127.0.0.1:2380", "")
	fs.Parse(os.Args[1:])
	cfg := embed.NewConfig()
	cfg.Dir = *dir
	cu, _ := url.Parse(*client)
	pu, _ := url.Parse(*peer)
	cfg.ListenClientUrls = []url.URL{*cu}
	cfg.AdvertiseClientUrls = []url.URL{*cu}
	cfg.ListenPeerUrls = []url.URL{*pu}
	cfg.AdvertisePeerUrls = []url.URL{*pu}
	cfg.InitialCluster = cfg.InitialClusterFromName(cfg.Name)
	cfg.UnsafeNoFsync = true
	cfg.LogLevel = "error"
	e, err := embed.StartEtcd(cfg)
	if err != nil {
		log.Fatal(err)
	}
	<-e.Server.ReadyNotify()
	ch := make(chan os.Signal, 1)
	signal.Notify(ch, syscall.SIGINT, syscall.SIGTERM)
	select {
	case <-ch:
		e.Close()
	case err := <-e.Err():
		log.Fatal(err)
	}
}
