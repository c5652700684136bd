// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <string>

#include "cli/lint/lint.h"
#include "cli/lint/read_objects.h"
#include "cli/lint/shell_words.h"
#include "cli/report/text.h"
#include "cli/run/directory.h"
#include "cli/run/engines.h"
#include "cli/run/output_tap.h"
#include "cli/run/stored_snapshot.h"
#include "lib/base/utf8.h"
#include "lib/codec/json_value.h"
#include "lib/codec/yaml.h"
#include "tests/fuzz/targets.h"

namespace cachewarm::fuzz {

// The name of a directory in site-packages, the beginning of a script, or pyvenv.cfg.
void PythonFiles(std::string_view bytes) {
  if (const auto engine = cli::ParseDistInfo(bytes); engine.has_value()) {
    const std::string image = cli::ImageOf({*engine});
    Require(image.size() < 128 && image.find_first_of("|,\n", 6) == std::string::npos,
            "a version cannot imitate a second engine");
  }
  for (const std::string& word : cli::WithoutEnv(cli::ParseShebang(bytes))) {
    Require(word.size() <= bytes.size(), "a word is a part of its script");
  }
  Require(cli::ParseVenv(bytes).home.size() <= bytes.size(), "home is a part of its file");
  static_cast<void>(cli::PythonVersionOf(bytes));
}

void DirectoryMarker(std::string_view bytes) {
  if (const auto kind = cli::ParseMarker(bytes); kind.ok()) {
    const auto again = cli::ParseMarker(cli::WriteMarker(*kind));
    Require(again.ok() && *again == *kind, "a marker that was read can be written");
  }
}

void StoredSnapshot(std::string_view bytes) {
  if (const auto snapshot = cli::ParseSnapshot(bytes); snapshot.ok()) {
    const auto again = cli::ParseSnapshot(cli::WriteSnapshot(*snapshot));
    Require(again.ok() && *again == *snapshot, "a snapshot that was read can be written");
  }
}

// Input: a manifest for "cachewarm lint", and the command line of a container.
void LintManifest(std::string_view bytes) {
  size_t words = 0;
  for (const std::string& word : lint::ShellWords(bytes)) {
    Require(!word.empty(), "a word is not empty");
    words += word.size();
  }
  Require(words <= bytes.size(), "words are parts of their line");
  const auto documents = codec::ParseYamlStream(bytes, {.nodes_max = 10'000});
  if (!documents.ok()) {
    return;
  }
  lint::Input input;
  for (const codec::Json& document : *documents) {
    static_cast<void>(lint::AddObject(document, lint::Scope::kNamedObject, input));
  }
  for (const lint::Finding& finding : lint::Lint(input, {})) {
    Require(finding.rule != nullptr && finding.problem.pod != nullptr &&
                !finding.problem.message.empty(),
            "a finding names its rule, its object and its problem");
  }
}

// Input: the width (first byte), then a text for the page of "cachewarm report".
void ReportText(std::string_view bytes) {
  if (bytes.empty()) {
    return;
  }
  const size_t columns = static_cast<unsigned char>(bytes.front());
  const std::string shown = cli::report::Shown(bytes.substr(1), columns);
  Require(IsUtf8(shown) && !HasAsciiControl(shown), "a shown text is one line of UTF-8");
  Require(shown.find_first_of("<>\"'") == std::string::npos, "a shown text has no markup");
  size_t width = 0;
  for (size_t at = 0; at < shown.size(); ++width) {
    // An escaped character is one character: "&amp;".
    at = shown[at] == '&' ? shown.find(';', at) + 1 : at + Utf8SequenceLength(shown, at);
  }
  Require(width <= std::max<size_t>(columns, 1), "a shown text fits into its columns");
}

// Input: the size of the pieces (first byte), then the output of a command.
void CommandOutput(std::string_view bytes) {
  static const cli::Pattern pattern = *cli::Pattern::Parse("^(INFO|.*ready).*[0-9]+ s$");
  if (bytes.empty()) {
    return;
  }
  const auto matches = [output = bytes.substr(1)](size_t piece) {
    cli::LineMatcher matcher(pattern);
    bool matched = false;
    for (size_t at = 0; at < output.size(); at += piece) {
      matched = matcher.Feed(output.substr(at, piece)) || matched;
    }
    return matcher.Finish() || matched;
  };
  const size_t piece = 1U + static_cast<unsigned char>(bytes.front());
  Require(matches(piece) == matches(bytes.size()), "the pieces of an output do not matter");
}

}  // namespace cachewarm::fuzz
