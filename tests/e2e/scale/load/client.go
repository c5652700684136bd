// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bufio"
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"time"
)

// The API server, over HTTP/2, or over connections of HTTP/1.1 when h1 > 0.
type client struct {
	server string
	http   *http.Client
	token  string // instead of the certificate
}

func (a access) connect(h1 int, withCertificate bool) (*client, error) {
	authority, err := os.ReadFile(*a.ca)
	if err != nil {
		return nil, err
	}
	trust := &tls.Config{RootCAs: x509.NewCertPool()}
	trust.RootCAs.AppendCertsFromPEM(authority)
	if withCertificate {
		pair, err := tls.LoadX509KeyPair(*a.cert, *a.key)
		if err != nil {
			return nil, err
		}
		trust.Certificates = []tls.Certificate{pair}
	}
	transport := &http.Transport{TLSClientConfig: trust, ForceAttemptHTTP2: h1 == 0}
	if h1 > 0 {
		transport.TLSNextProto = map[string]func(string, *tls.Conn) http.RoundTripper{}
		transport.MaxIdleConnsPerHost = h1
		transport.MaxConnsPerHost = h1
	}
	return &client{server: *a.server, http: &http.Client{Transport: transport}}, nil
}

func (c *client) as(token string) *client {
	return &client{server: c.server, http: c.http, token: token}
}

func (c *client) send(ctx context.Context, method, path, kind string, body []byte) (*http.Response, error) {
	request, err := http.NewRequestWithContext(ctx, method, c.server+path, bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	request.Header.Set("Accept", "application/json")
	if kind != "" {
		request.Header.Set("Content-Type", kind)
	}
	if c.token != "" {
		request.Header.Set("Authorization", "Bearer "+c.token)
	}
	return c.http.Do(request)
}

// A server that is behind, or has too much to do, says so; asked again, it answers.
var passing = map[int]bool{429: true, 503: true, 504: true}

// Sends one request, again for a minute while the server cannot yet, and decodes the answer into
// `out` unless that is nil.
func (c *client) do(method, path, kind string, in, out any) error {
	var body []byte
	if in != nil {
		var err error
		if body, err = json.Marshal(in); err != nil {
			return err
		}
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	response, err := c.send(ctx, method, path, kind, body)
	for err == nil && passing[response.StatusCode] {
		response.Body.Close()
		select {
		case <-ctx.Done():
			return fmt.Errorf("%s %s: %s for a minute", method, path, response.Status)
		case <-time.After(time.Second):
			response, err = c.send(ctx, method, path, kind, body)
		}
	}
	if err != nil {
		return err
	}
	defer response.Body.Close()
	if response.StatusCode > 299 {
		words, _ := io.ReadAll(io.LimitReader(response.Body, 500))
		return fmt.Errorf("%s %s: %s %s", method, path, response.Status, words)
	}
	if out == nil {
		_, err = io.Copy(io.Discard, response.Body)
		return err
	}
	return json.NewDecoder(response.Body).Decode(out)
}

// Every item of a list, page by page; gives the version to watch from.
func list[T any](c *client, path string, query url.Values, each func(T)) (string, error) {
	for next := ""; ; {
		query.Set("limit", "200")
		query.Set("continue", next)
		var page struct {
			Metadata struct{ ResourceVersion, Continue string }
			Items    []T
		}
		if err := c.do("GET", path+"?"+query.Encode(), "", nil, &page); err != nil {
			return "", err
		}
		for _, item := range page.Items {
			each(item)
		}
		if next = page.Metadata.Continue; next == "" {
			return page.Metadata.ResourceVersion, nil
		}
	}
}

// Calls `each` with every event until `ctx` ends; lists again when the server forgot the place.
func follow[T any](ctx context.Context, c *client, path string, query url.Values,
	each func(kind string, object T)) error {
	for ctx.Err() == nil {
		from, err := list(c, path, query, func(item T) { each("ADDED", item) })
		if err != nil {
			return err
		}
		watch := url.Values{"watch": {"1"}, "resourceVersion": {from}}
		for name, values := range query {
			if name != "limit" && name != "continue" {
				watch[name] = values
			}
		}
		response, err := c.send(ctx, "GET", path+"?"+watch.Encode(), "", nil)
		if err != nil {
			return nilIfEnded(ctx, err)
		}
		decoder := json.NewDecoder(bufio.NewReaderSize(response.Body, 1<<20))
		for {
			var event struct {
				Type   string
				Object T
			}
			if err := decoder.Decode(&event); err != nil || event.Type == "ERROR" {
				break
			}
			each(event.Type, event.Object)
		}
		response.Body.Close()
	}
	return nil
}

func nilIfEnded(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return nil
	}
	return err
}
