//===- StandardHeaders.h - A precompiled header without MLIR ----*- C++ -*-===//
//
// What most files of the runtime and of what both halves stand on include.
// <filesystem> is left out: it brings std::quoted, which a call of a file's own
// `quoted` with a std::string finds too.
//
//===----------------------------------------------------------------------===//
#include "fsdp/Support/Error.h"
#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <cstring>
#include <deque>
#include <fstream>
#include <functional>
#include <iostream>
#include <map>
#include <memory>
#include <mutex>
#include <numeric>
#include <optional>
#include <set>
#include <sstream>
#include <string>
#include <thread>
#include <unordered_map>
#include <vector>
