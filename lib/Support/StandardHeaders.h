//===- StandardHeaders.h - A precompiled header without MLIR ----*- C++ -*-===//
//
// What most files of the runtime and of what both halves stand on include. Not
// <filesystem>: with std::quoted it would hide a mistake of those who call theirs so.
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
