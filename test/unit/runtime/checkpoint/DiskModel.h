//===- DiskModel.h - What a disk may have after a loss of power -*- C++ -*-===//
//
// The weakest disk that POSIX allows: of a file that was not synced any part
// may be missing. Of a folder that was not synced every change of a name may
// be missing, whatever came before or after it; changes of the same name are
// made in their order, and a rename as a whole.
//
//===----------------------------------------------------------------------===//
#ifndef FSDP_TEST_CHECKPOINT_DISKMODEL_H
#define FSDP_TEST_CHECKPOINT_DISKMODEL_H

#include "FileCalls.h"
#include <map>
#include <optional>
#include <random>

namespace fsdp::test {

/// Paths below a folder; of a file its content.
using Tree = std::map<std::string, std::optional<std::string>>;
Tree readTree(const std::string &folder);
void writeTree(const std::string &folder, const Tree &tree);

class DiskModel {
public:
  /// All of the tree is on the disk.
  explicit DiskModel(const Tree &tree);

  /// Does what a call has done below the folder `root`.
  void apply(const FileCall &call, const std::string &root);
  /// What everybody sees while the power is there.
  Tree now() const;
  /// One of the trees that may be there after a loss of power.
  Tree afterPowerLoss(std::mt19937 &random) const;

private:
  using Names = std::map<std::string, size_t>; // of nodes
  struct Change {
    FileCall::Kind kind;
    std::string name, to;
    size_t node; // that gets the name, of Create and MakeFolder
  };
  /// A file or a folder, whatever it is called.
  struct Node {
    bool isFolder = false;
    Names names, namesOnDisk;
    std::vector<Change> pending; // between the two
    std::string content;
    std::optional<std::string> contentOnDisk; // unset: it was never synced
  };
  size_t add(bool isFolder);
  size_t find(const std::string &path) const;
  static void make(const Change &change, Names &names);
  static Names someNames(const Node &folder, unsigned percent,
                         std::mt19937 &random);
  static std::string someContent(const Node &file, std::mt19937 &random);
  template <typename NamesOf, typename ContentOf>
  void collect(size_t folder, const std::string &prefix, Tree &tree,
               NamesOf namesOf, ContentOf contentOf) const;

  std::vector<Node> nodes; // the first is the folder of all
};

} // namespace fsdp::test

#endif // FSDP_TEST_CHECKPOINT_DISKMODEL_H
