#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Writes go.mod and go.sum again, for another version of Kubernetes: edit the versions, run,
# commit both. With the word "older": older.mod and older.sum, of a Kubernetes that has no
# admission policies. Kubernetes' own staging modules have to be replaced by their published
# versions one by one.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")"

KUBERNETES=36.1
ETCD=v3.6.8
KWOK=v0.8.0
GO=1.26.0
FILE=go
STAGING="api apiextensions-apiserver apimachinery apiserver cli-runtime client-go cloud-provider
  cluster-bootstrap code-generator component-base component-helpers controller-manager cri-api
  cri-client csi-translation-lib dynamic-resource-allocation endpointslice externaljwt
  kms kube-aggregator kube-controller-manager kube-proxy kube-scheduler kubectl kubelet metrics
  mount-utils pod-security-admission sample-apiserver sample-cli-plugin
  sample-controller"
SINCE_36="cri-streaming streaming"

if [ "${1:-}" = older ]; then
  KUBERNETES=34.2
  ETCD=v3.6.4
  KWOK=v0.7.0  # named by go.mod, left out of the build
  GO=1.24.0
  FILE=older
  SINCE_36=
fi

{
  printf 'module cachewarm.io/tests/kubebox\n\ngo %s\n\nrequire (\n' "$GO"
  printf 'k8s.io/kubernetes v1.%s\ngo.etcd.io/etcd/server/v3 %s\nsigs.k8s.io/kwok %s\n)\n' \
    "$KUBERNETES" "$ETCD" "$KWOK"
  printf 'replace (\n'
  for module in $STAGING $SINCE_36; do
    printf 'k8s.io/%s => k8s.io/%s v0.%s\n' "$module" "$module" "$KUBERNETES"
  done
  printf ')\n'
} >"$FILE.mod"
go mod tidy -modfile="$FILE.mod"
