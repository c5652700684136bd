// SPDX-License-Identifier: Apache-2.0
#include "cli/run/directory.h"
#include "cli/run/engines.h"
#include "cli/run/stored_snapshot.h"
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

}  // namespace cachewarm::fuzz
