//===- Backends.h - The targets that programs run on ------------*- C++ -*-===//
#ifndef FSDP_TARGET_BACKENDS_H
#define FSDP_TARGET_BACKENDS_H

#include "fsdp/Emit/Backend.h"

namespace fsdp {

#define FSDP_PLANNED_TARGET(Name)
#define FSDP_TARGET(Name) std::unique_ptr<Backend> make##Name##Backend();
#include "fsdp/Target/Targets.def"

/// That of a target; null where programs are only planned for it. It lives as
/// long as the process.
const Backend *backendOf(const rt::Target &target);

} // namespace fsdp

#endif // FSDP_TARGET_BACKENDS_H
