// SPDX-License-Identifier: Apache-2.0

//go:build older

package main

import (
	"context"
	"errors"
)

// No release of kwok builds against Kubernetes 1.34: its fake nodes exist with the current one only.
func runKwok(context.Context) error {
	return errors.New("this kubebox has no kwok: it was built of an older Kubernetes")
}

func kwokStages() []string { return nil }
