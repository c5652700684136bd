// SPDX-License-Identifier: Apache-2.0
#include "cli/run/interpreter.h"

#include <algorithm>
#include <array>
#include <filesystem>
#include <set>
#include <utility>

#include "lib/fs/dir.h"
#include "lib/fs/file.h"
#include "lib/fs/program.h"

namespace cachewarm::cli {
namespace {

namespace stdfs = std::filesystem;

constexpr size_t kHeadBytes = 4096;
constexpr int64_t kConfigBytesMax = 64 << 10;
constexpr int kScriptsMax = 4;  // maximum chain of scripts whose interpreter is a script
constexpr size_t kWordsMax = 64;
constexpr int kNamesMax = 50'000;
constexpr int kParentsMax = 32;
constexpr size_t kVersionsBytesMax = 128;  // limit of all versions of one engine, joined

std::string Variable(const PlannedCommand& command, const std::string& name) {
  const auto found = command.environment.find(name);
  return found == command.environment.end() ? std::string() : found->second;
}

std::vector<std::string> SplitPath(const std::string& text) {
  std::vector<std::string> parts;
  for (size_t begin = 0; begin <= text.size();) {
    const size_t end = std::min(text.find(':', begin), text.size());
    parts.push_back(text.substr(begin, end - begin));
    begin = end + 1;
  }
  return parts;
}

// Returns the file that execvp(3) would execute; empty if there is none.
stdfs::path Locate(const std::string& word, const PlannedCommand& command) {
  const stdfs::path directory = command.directory;
  if (word.find('/') != std::string::npos) {
    return fs::IsProgram(directory / word) ? directory / word : stdfs::path();
  }
  const std::string path = Variable(command, "PATH");
  if (word.empty() || path.empty()) {
    return {};
  }
  for (const std::string& each : SplitPath(path)) {
    if (stdfs::path candidate = directory / each / word; fs::IsProgram(candidate)) {
      return candidate;
    }
  }
  return {};
}

// Returns the beginning of a regular file; empty if it cannot be read.
std::string ReadHead(const stdfs::path& path) {
  std::error_code error;
  const stdfs::path real = stdfs::canonical(path, error);
  if (error) {
    return {};
  }
  const auto directory = fs::Dir::Open(real.parent_path().string());
  const auto file = directory.ok() ? directory->OpenFile(real.filename().string())
                                   : absl::StatusOr<fs::Fd>(directory.status());
  std::string head(kHeadBytes, '\0');
  const auto bytes = file.ok() ? fs::ReadAt(*file, 0, head.data(), head.size()) : size_t{0};
  head.resize(bytes.value_or(0));
  return head;
}

// Returns the first word of a file; empty if it cannot be read.
std::string ReadFirstWord(const stdfs::path& path) {
  const std::string head = ReadHead(path);
  return head.substr(0, head.find_first_of(" \t\r\n"));
}

// Returns the Python version that pyenv selects; looks in the same order as `pyenv version`.
std::string PyenvVersion(const stdfs::path& root, const PlannedCommand& command) {
  std::string version = Variable(command, "PYENV_VERSION");
  stdfs::path directory = command.directory;
  for (int i = 0; version.empty() && i < kParentsMax; ++i) {
    version = ReadFirstWord(directory / ".python-version");
    if (directory == directory.parent_path()) {
      break;
    }
    directory = directory.parent_path();
  }
  if (version.empty()) {
    version = ReadFirstWord(root / "version");
  }
  return version.substr(0, version.find(':'));
}

// Returns the program that a shim of pyenv (ROOT/shims/NAME) executes; empty for other files.
stdfs::path FollowShim(const stdfs::path& shim, std::string_view head,
                       const PlannedCommand& command) {
  if (shim.parent_path().filename() != "shims" || head.find("pyenv") == std::string_view::npos) {
    return {};
  }
  const stdfs::path root = shim.parent_path().parent_path();
  const std::string version = PyenvVersion(root, command);
  if (version.empty() || version.find('/') != std::string::npos || version.starts_with('.')) {
    return {};
  }
  const stdfs::path program = root / "versions" / version / "bin" / shim.filename();
  return fs::IsProgram(program) ? program : stdfs::path();
}

// Returns the Python interpreter that runs the command `words`: the program itself, or the
// interpreter of the script. Empty if neither is Python.
std::string Follow(std::vector<std::string> words, const PlannedCommand& command) {
  for (int i = 0; i <= kScriptsMax; ++i) {
    words = WithoutEnv(std::move(words));
    if (words.empty()) {
      return {};
    }
    const stdfs::path program = Locate(words[0], command);
    if (program.empty()) {
      return {};
    }
    const std::string head = ReadHead(program);
    if (const stdfs::path target = FollowShim(program, head, command); !target.empty()) {
      words = {target.string()};
      continue;
    }
    words = ParseShebang(head);
    if (words.empty()) {
      return IsPython(program.filename().string()) ? program.lexically_normal().string() : "";
    }
  }
  return {};
}

// Adds the library directories of Python below `prefix`: lib/python3.11/site-packages, and
// dist-packages, as Debian names it.
void AddPackages(const stdfs::path& prefix, const std::string& version,
                 std::vector<stdfs::path>& to) {
  std::set<std::string> names;
  if (!version.empty()) {
    names.insert("python" + version);
  } else {
    std::error_code error;
    int seen = 0;
    for (stdfs::directory_iterator at(prefix / "lib", error), end;
         !error && at != end && seen < kNamesMax; at.increment(error), ++seen) {
      if (const std::string name = at->path().filename().string(); !PythonVersionOf(name).empty()) {
        names.insert(name);
      }
    }
  }
  for (const char* library : {"lib", "lib64"}) {
    for (const std::string& name : names) {
      to.push_back(prefix / library / name / "site-packages");
      to.push_back(prefix / library / name / "dist-packages");
    }
  }
  to.push_back(prefix / "lib" / "python3" / "dist-packages");
}

void AddSystemPackages(const stdfs::path& interpreter, std::vector<stdfs::path>& to) {
  std::error_code error;
  const stdfs::path real = stdfs::canonical(interpreter, error);
  if (error) {
    return;
  }
  const std::string version = PythonVersionOf(real.filename().string());
  const stdfs::path prefix = real.parent_path().parent_path();
  if (prefix == "/usr") {
    AddPackages("/usr/local", version, to);  // where pip of Debian installs
  }
  AddPackages(prefix, version, to);
}

void AddUserPackages(const PlannedCommand& command, const std::string& version,
                     std::vector<stdfs::path>& to) {
  if (!Variable(command, "PYTHONNOUSERSITE").empty()) {
    return;
  }
  stdfs::path base = Variable(command, "PYTHONUSERBASE");
  if (const std::string home = Variable(command, "HOME"); base.empty() && !home.empty()) {
    base = stdfs::path(home) / ".local";
  }
  if (base.is_absolute()) {
    AddPackages(base, version, to);
  }
}

// Returns the directories from which the interpreter imports packages, in the order of sys.path.
std::vector<stdfs::path> PackageDirectories(const stdfs::path& interpreter,
                                            const PlannedCommand& command) {
  std::vector<stdfs::path> directories;
  if (const std::string own = Variable(command, "PYTHONPATH"); !own.empty()) {
    for (const std::string& each : SplitPath(own)) {
      directories.push_back(stdfs::path(command.directory) / each);
    }
  }
  std::error_code error;
  // CPython looks beside the interpreter as it was started, without resolving links.
  for (const stdfs::path& prefix :
       {interpreter.parent_path(), interpreter.parent_path().parent_path()}) {
    const auto text = fs::ReadNamedFile((prefix / "pyvenv.cfg").string(), kConfigBytesMax);
    if (!text.ok()) {
      continue;
    }
    const Venv venv = ParseVenv(*text);
    AddPackages(prefix, "", directories);
    if (venv.system_packages) {
      const stdfs::path base = stdfs::path(venv.home) / interpreter.filename();
      AddUserPackages(command, "", directories);
      AddSystemPackages(fs::IsProgram(base) ? base : stdfs::path(venv.home) / "python3",
                        directories);
    }
    return directories;
  }
  const stdfs::path real = stdfs::canonical(interpreter, error);
  AddUserPackages(command, PythonVersionOf(real.filename().string()), directories);
  AddSystemPackages(interpreter, directories);
  return directories;
}

// Returns the engines in one directory. If a failed upgrade left two versions of an engine, returns
// both, so that the key differs from that of a clean installation.
EngineVersions EnginesIn(const stdfs::path& directory) {
  std::map<std::string, std::set<std::string>> found;
  std::error_code error;
  int seen = 0;
  for (stdfs::directory_iterator at(directory, error), end; !error && at != end && seen < kNamesMax;
       at.increment(error), ++seen) {
    if (auto engine = ParseDistInfo(at->path().filename().string()); engine.has_value()) {
      found[engine->first].insert(std::move(engine->second));
    }
  }
  EngineVersions engines;
  for (const auto& [engine, versions] : found) {
    std::string& joined = engines[engine];
    for (const std::string& version : versions) {
      joined += (joined.empty() ? "" : "|") + version;
      if (joined.size() > kVersionsBytesMax) {
        break;
      }
    }
  }
  return engines;
}

}  // namespace

std::string FindInterpreter(const PlannedCommand& command) {
  std::vector<std::string> words = command.words;
  words.resize(std::min(words.size(), kWordsMax));
  for (; !words.empty(); words.erase(words.begin())) {
    if (words[0].starts_with('-')) {
      continue;
    }
    if (std::string found = Follow(words, command); !found.empty()) {
      return found;
    }
  }
  for (const char* name : {"python3", "python"}) {
    if (std::string found = Follow({name}, command); !found.empty()) {
      return found;
    }
  }
  return {};
}

EngineVersions FindEngines(const PlannedCommand& command) {
  const std::string interpreter = FindInterpreter(command);
  EngineVersions engines;
  if (interpreter.empty()) {
    return engines;
  }
  for (const stdfs::path& directory : PackageDirectories(interpreter, command)) {
    engines.merge(EnginesIn(directory));
  }
  return engines;
}

}  // namespace cachewarm::cli
