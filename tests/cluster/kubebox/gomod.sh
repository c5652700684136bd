#!/bin/bash
# writes go.mod for kubebox (k8s 1.36.1) and tidies; run in the directory with main.go etcd.go kwok.go
set -e; V=36.1
{ echo "module example.test/kubebox"; echo; echo "go 1.26.0"; echo; echo "require ("; echo "k8s.io/kubernetes v1.$V"; echo "go.etcd.io/etcd/server/v3 v3.6.8"; echo "sigs.k8s.io/kwok v0.8.0"; echo ")"; echo "replace ("
for m in api apiextensions-apiserver apimachinery apiserver cli-runtime client-go cloud-provider cluster-bootstrap code-generator component-base component-helpers controller-manager cri-api cri-client cri-streaming csi-translation-lib dynamic-resource-allocation endpointslice externaljwt kms kube-aggregator kube-controller-manager kube-proxy kube-scheduler kubectl kubelet metrics mount-utils pod-security-admission sample-apiserver sample-cli-plugin sample-controller streaming; do echo "k8s.io/$m => k8s.io/$m v0.$V"; done; echo ")"; } > go.mod
go mod tidy
