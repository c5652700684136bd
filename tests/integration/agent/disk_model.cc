// SPDX-License-Identifier: Apache-2.0
#include "tests/integration/agent/disk_model.h"

#include <algorithm>
#include <array>
#include <filesystem>
#include <fstream>
#include <map>
#include <random>
#include <set>
#include <utility>
#include <vector>

namespace cachewarm::agent {
namespace {

namespace stdfs = std::filesystem;

class Disk {
 public:
  Disk(const DiskLog& log, const PowerCut& cut) : log_(log), random_(cut.seed) {
    for (size_t id = 1; id < log.nodes.size(); ++id) {
      const DiskNode& node = log.nodes[id];
      files_[static_cast<NodeId>(id)].durable = node.bytes;
      for (const auto& [name, target] : node.names) {
        names_[{static_cast<NodeId>(id), name}].durable = target;
      }
    }
    for (size_t i = 0; i < cut.at; ++i) {
      Play(log.events[i]);
    }
    // All of a kind, none of it, or something between: rare mixtures of both kinds are the
    // dangerous ones.
    constexpr std::array<unsigned, 5> kPercent = {0, 20, 50, 90, 100};
    names_percent_ = kPercent[random_() % kPercent.size()];
    bytes_percent_ = kPercent[random_() % kPercent.size()];
    Settle();
  }

  void Make(const std::string& path) { MakeDirectory(kRootNode, path); }

 private:
  struct File {
    std::string durable;
    std::vector<const DiskEvent*> pending;
  };
  struct Name {
    NodeId durable = 0;
    std::vector<const DiskEvent*> pending;
  };

  void Play(const DiskEvent& event) {
    switch (event.kind) {
      case DiskEvent::Kind::kName:
        names_[{event.node, event.name}].pending.push_back(&event);
        break;
      case DiskEvent::Kind::kWrite:
        files_[event.node].pending.push_back(&event);
        break;
      case DiskEvent::Kind::kSync:
        SyncFile(files_[event.node]);
        SyncNames(event.node);
        break;
      case DiskEvent::Kind::kSyncAll:
        for (auto& [id, file] : files_) {
          SyncFile(file);
        }
        for (auto& [key, name] : names_) {
          SyncName(name);
        }
        break;
    }
  }

  static void Write(std::string& bytes, const DiskEvent& event, size_t count, bool is_zero) {
    const auto offset = static_cast<size_t>(event.offset);
    bytes.resize(std::max(bytes.size(), offset + count));
    if (is_zero) {
      std::fill_n(bytes.begin() + static_cast<ptrdiff_t>(offset), count, '\0');
    } else {
      bytes.replace(offset, count, event.bytes, 0, count);
    }
  }

  static void SyncFile(File& file) {
    for (const DiskEvent* event : file.pending) {
      Write(file.durable, *event, event->bytes.size(), false);
    }
    file.pending.clear();
  }

  void SyncName(Name& name) {
    for (const DiskEvent* event : name.pending) {
      name.durable = event->target;
      kept_[event->group] = true;  // and with it the other half of a move
    }
    name.pending.clear();
  }

  void SyncNames(NodeId directory) {
    for (auto it = names_.lower_bound({directory, ""});
         it != names_.end() && it->first.first == directory; ++it) {
      SyncName(it->second);
    }
  }

  bool Draw(unsigned percent) { return random_() % 100 < percent; }

  // Decides what is kept.
  void Settle() {
    for (auto& [key, name] : names_) {
      for (const DiskEvent* event : name.pending) {
        const auto [kept, is_new] = kept_.try_emplace(event->group, false);
        if (is_new) {
          kept->second = Draw(names_percent_);
        }
        if (kept->second) {
          name.durable = event->target;
        }
      }
    }
    for (auto& [id, file] : files_) {
      for (const DiskEvent* event : file.pending) {
        if (Draw(bytes_percent_)) {
          Write(file.durable, *event, event->bytes.size(), false);
          continue;
        }
        switch (random_() % 3) {
          case 0:
            break;
          case 1:
            Write(file.durable, *event, event->bytes.size(), true);
            break;
          default:
            Write(file.durable, *event, event->bytes.size() / 2, false);
        }
      }
    }
  }

  void MakeDirectory(NodeId directory, const stdfs::path& path) {
    for (auto it = names_.lower_bound({directory, ""});
         it != names_.end() && it->first.first == directory; ++it) {
      const NodeId id = it->second.durable;
      if (id == 0) {
        continue;
      }
      const DiskNode& node = log_.nodes[static_cast<size_t>(id)];
      const stdfs::path name = path / it->first.second;
      if (node.type == DiskNode::Type::kSymlink) {
        stdfs::create_symlink(node.target, name);
      } else if (node.type == DiskNode::Type::kFile) {
        std::ofstream(name, std::ios::binary) << files_[id].durable;
      } else if (made_.insert(id).second) {  // two moves may have left two names: keep the first
        stdfs::create_directory(name);
        MakeDirectory(id, name);
      }
    }
  }

  const DiskLog& log_;
  std::minstd_rand random_;
  unsigned names_percent_ = 0;
  unsigned bytes_percent_ = 0;
  std::map<NodeId, File> files_;
  std::map<std::pair<NodeId, std::string>, Name> names_;
  std::map<int, bool> kept_;  // by group
  std::set<NodeId> made_;
};

}  // namespace

void MakeDiskAfter(const DiskLog& log, const PowerCut& cut, const std::string& path) {
  Disk(log, cut).Make(path);
}

}  // namespace cachewarm::agent
