// SPDX-License-Identifier: Apache-2.0

// goextract gzip|zstd ARCHIVE DIGEST DIRECTORY: unpacks a tar as a Go node agent of today does it.
// One stream: the file is hashed by a TeeReader on its way into the decompressor (compress/gzip, or
// klauspost's zstd), archive/tar reads members, io.Copy writes them. It ends with an error when the
// sha256 of the archive is not DIGEST.
package main

import (
	"archive/tar"
	"compress/gzip"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/klauspost/compress/zstd"
)

func decompress(kind string, source io.Reader) (io.Reader, error) {
	switch kind {
	case "gzip":
		return gzip.NewReader(source)
	case "zstd":
		return zstd.NewReader(source)
	}
	return nil, fmt.Errorf("%s: gzip or zstd is meant", kind)
}

func writeFile(path string, header *tar.Header, source io.Reader) error {
	out, err := os.OpenFile(path, os.O_CREATE|os.O_EXCL|os.O_WRONLY, header.FileInfo().Mode())
	if err != nil {
		return err
	}
	if _, err := io.Copy(out, source); err != nil {
		out.Close()
		return err
	}
	return out.Close()
}

func writeMembers(source io.Reader, root string) error {
	members := tar.NewReader(source)
	for {
		header, err := members.Next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		if !filepath.IsLocal(header.Name) {
			return fmt.Errorf("%s: leaves the directory", header.Name)
		}
		path := filepath.Join(root, header.Name)
		switch header.Typeflag {
		case tar.TypeDir:
			err = os.MkdirAll(path, 0o755)
		case tar.TypeReg:
			err = writeFile(path, header, members)
		default:
			err = fmt.Errorf("%s: type %c", header.Name, header.Typeflag)
		}
		if err != nil {
			return err
		}
	}
}

func extract(kind, archive, digest, root string) error {
	file, err := os.Open(archive)
	if err != nil {
		return err
	}
	defer file.Close()
	hash := sha256.New()
	hashed := io.TeeReader(file, hash)
	plain, err := decompress(kind, hashed)
	if err != nil {
		return err
	}
	if err := writeMembers(plain, root); err != nil {
		return err
	}
	// Bytes after the end of the tar are part of the digest.
	if _, err := io.Copy(io.Discard, plain); err != nil {
		return err
	}
	if _, err := io.Copy(io.Discard, hashed); err != nil {
		return err
	}
	if found := fmt.Sprintf("%x", hash.Sum(nil)); found != digest {
		return fmt.Errorf("%s has digest %s, not %s", archive, found, digest)
	}
	return nil
}

func main() {
	if len(os.Args) != 5 {
		fmt.Fprintln(os.Stderr, "usage: goextract gzip|zstd ARCHIVE DIGEST DIRECTORY")
		os.Exit(2)
	}
	if err := extract(os.Args[1], os.Args[2], os.Args[3], os.Args[4]); err != nil {
		fmt.Fprintln(os.Stderr, "goextract:", err)
		os.Exit(1)
	}
}
