//===- CalibratedShape.h - Shapes to measure, as text -----------*- C++ -*-===//
#ifndef FSDP_RUNTIME_CALIBRATE_CALIBRATEDSHAPE_H
#define FSDP_RUNTIME_CALIBRATE_CALIBRATEDSHAPE_H

#include "fsdp/Machine/Machine.h"
#include <array>
#include <string>

namespace fsdp::rt {

/// A matmul, or attention in both directions; sizes as Machine::Rate says.
struct CalibratedShape {
  enum Kind { Product, Attention } kind = Product;
  MathType type = MathType::F32;
  Layout layout = Layout::NN;
  std::array<int64_t, 3> sizes{};
};

/// "product,f32,nt,512,512,2048" and "attention,f32,nn,256,256,64".
std::string textOf(const CalibratedShape &shape);
/// Throws fsdp::Error that quotes a text that is none.
CalibratedShape readShape(const std::string &text);

} // namespace fsdp::rt

#endif // FSDP_RUNTIME_CALIBRATE_CALIBRATEDSHAPE_H
