// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

// Parsers for the files by which a Python installation names its engines. The files are untrusted:
// a parser ignores text that it does not understand. Pure.
namespace cachewarm::cli {

// Version by engine: {"torch", "2.15.0+cu132"}. The engines are torch, triton, vllm, sglang, jax
// and flashinfer: those whose version decides whether compiled code can be reused.
using EngineVersions = std::map<std::string, std::string>;

// Returns engine and version of a directory in site-packages, "torch-2.15.0+cu132.dist-info"
// (packaging.python.org, "Recording installed projects"). nullopt for every other name.
std::optional<std::pair<std::string, std::string>> ParseDistInfo(std::string_view name);

// Returns the image of a key for a command with these engines: "local" if there are none, else
// "local/torch-2.15.0,triton-3.9.0".
std::string ImageOf(const EngineVersions& engines);

// Returns the interpreter, with its arguments, that runs a script beginning with `head`; empty if
// `head` is no script. Follows the two-line form that pip writes if the path is too long for the
// kernel ("#!/bin/sh", then "'''exec' /path/python ...").
std::vector<std::string> ParseShebang(std::string_view head);

// Removes "env" from the beginning of the command `words`, with its options and assignments. For
// example, "env -u A B=c python3 x" becomes "python3 x".
std::vector<std::string> WithoutEnv(std::vector<std::string> words);

// True for "python", "python3" and "python3.11".
bool IsPython(std::string_view file_name);
// Returns "3.11" for "python3.11"; empty for names without a minor version.
std::string PythonVersionOf(std::string_view file_name);

// The content of pyvenv.cfg, which makes a directory a virtual environment.
struct Venv {
  std::string home;  // directory of the interpreter from which the environment was made
  bool system_packages = false;
};
Venv ParseVenv(std::string_view text);

}  // namespace cachewarm::cli
