//===- Capture.h - Graphs of captured calls ---------------------*- C++ -*-===//
//
// A stream is in no capture, the origin of one, or was forked from one by a
// wait. What is issued on it then becomes a node with copies of its arguments,
// after the nodes before it on its stream and those whose records it has
// waited for. A launch runs the nodes in any order that these edges allow:
// which streams they came from does not matter any more.
//
//===----------------------------------------------------------------------===//
#ifndef FSDP_TEST_FAKECUDA_CAPTURE_H
#define FSDP_TEST_FAKECUDA_CAPTURE_H

#include "Process.h"
#include <driver_types.h>
#include <set>
#include <stdexcept>

namespace fsdp::fake {

/// A call that CUDA does not take, after which the process goes on.
struct Refusal : std::exception {
  Refusal(cudaError_t error, std::string text)
      : error(error), text(std::move(text)) {}
  const char *what() const noexcept override { return text.c_str(); }
  cudaError_t error;
  std::string text;
};

struct GraphNode {
  std::string what;
  int priority;
  std::vector<size_t> after; // nodes, all before it
  /// Makes the operation of one launch.
  std::function<Operation()> make;
};

struct Graph {
  std::vector<GraphNode> nodes;
};

struct Capture {
  uint64_t id;
  uint32_t origin, thread;
  CaptureMode mode;
  bool isInvalid = false;
  std::shared_ptr<Graph> graph;
  /// The last nodes of every stream that takes part.
  std::map<uint32_t, std::vector<size_t>> last;
};

/// The capture that a stream takes part in; null if there is none.
Capture *captureOf(const Process &process, uint32_t stream);

/// One launch of a graph.
struct GraphRun {
  /// `priority` is that of all nodes; null: each has its own.
  GraphRun(const Graph &graph, const int *priority);

  void start();
  /// Takes a node that is ready.
  Operation take(size_t node);
  /// Has run it.
  void finish(size_t node);
  /// Why it does not go on; empty if it is over.
  std::string waitsFor() const;

  struct Node {
    Operation operation;
    int priority;
    std::vector<size_t> before; // nodes that come after it
    size_t missing;             // nodes that it follows
  };
  std::vector<Node> nodes;
  std::set<size_t> ready;
  size_t left; // nodes
};

} // namespace fsdp::fake

#endif // FSDP_TEST_FAKECUDA_CAPTURE_H
