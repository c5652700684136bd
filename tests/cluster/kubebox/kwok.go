// SPDX-License-Identifier: Apache-2.0

//go:build !older

package main

import (
	"context"

	"github.com/spf13/pflag"
	kwoknodefast "sigs.k8s.io/kwok/kustomize/stage/node/fast"
	kwokheartbeat "sigs.k8s.io/kwok/kustomize/stage/node/heartbeat-with-lease"
	kwokpodfast "sigs.k8s.io/kwok/kustomize/stage/pod/fast"
	kwokconfig "sigs.k8s.io/kwok/pkg/config"
	kwok "sigs.k8s.io/kwok/pkg/kwok/cmd"
	kwoklog "sigs.k8s.io/kwok/pkg/log"
)

func runKwok(ctx context.Context) error {
	// k8s.io/component-base/version/verflag registers a global "version" flag that cobra would trip over
	pflag.CommandLine = pflag.NewFlagSet("kwok", pflag.ContinueOnError)
	fs := pflag.NewFlagSet("global", pflag.ContinueOnError)
	fs.ParseErrorsAllowlist.UnknownFlags = true
	fs.Usage = func() {}
	ctx, _ = kwoklog.InitFlags(ctx, fs)
	ctx, err := kwokconfig.InitFlags(ctx, fs)
	if err != nil {
		return err
	}
	cmd := kwok.NewCommand(ctx)
	cmd.PersistentFlags().AddFlagSet(fs)
	return cmd.ExecuteContext(ctx)
}

func kwokStages() []string {
	return []string{kwoknodefast.DefaultNodeInit, kwokheartbeat.DefaultNodeHeartbeatWithLease, kwokpodfast.DefaultPodReady, kwokpodfast.DefaultPodComplete, kwokpodfast.DefaultPodDelete}
}
