//===- FamilyParts.h - What tables of families are put together of --------===//
#ifndef FSDP_FAMILIES_FAMILYPARTS_H
#define FSDP_FAMILIES_FAMILYPARTS_H

#include "fsdp/Families/Families.h"

namespace fsdp::checkpoint {

/// A fixed key that is written, too.
inline constexpr bool kWritten = true;

using Spellings = std::vector<std::pair<const char *, const char *>>;

/// A list in front of the keys that all configurations of transformers share
/// and that say nothing of what is computed, and of keys of relatives that old
/// or converted files carry.
std::vector<ConfigKey> withSharedKeys(std::vector<ConfigKey> keys);

std::vector<ConfigKey> keysOf(std::vector<const char *> names,
                              KeyRole role = KeyRole::Used);
std::vector<ConfigKey> joined(std::vector<std::vector<ConfigKey>> lists);

/// Sizes and settings of config.json that relatives of Llama call alike, and
/// what the fields are of a file that leaves them out.
std::vector<ConfigKey> usualKeys();
struct UsualDefaults {
  const char *dim, *layers, *heads, *kvHeads, *ffnDim, *vocab, *maxSeqLen,
      *normEps, *tied;
};
std::vector<ConfigField> usualFields(const UsualDefaults &is);

/// head_dim where the family's width of a head follows from others.
ConfigKey noHeadDim();
/// The field of the activation, by the key that has it. `first`: the name that
/// is written where several mean the same.
ConfigField activationField(const char *key, const char *fallback,
                            const char *first = "gelu_pytorch_tanh");

/// The key "architectures", with the JSON of its one value.
ConfigKey onlyModel(const char *architectures);

/// The keys of rotary positions where whole heads are rotated.
std::vector<ConfigKey> rotaryKeys();

/// A list with the usual fields that it lacks after it: sizes, and of rotary
/// positions base and layout, and the rare ones of stretches.
std::vector<FamilyField> withUsualFields(std::vector<FamilyField> fields);

/// Every rope_type whose angles do not depend on what was seen before.
Spellings allRopeTypes();

// The tables.
Family llamaFamily();
Family gpt2Family();
Family qwen2Family();
Family qwen3Family();
Family mistralFamily();
Family gemma2Family();
Family phi3Family();
Family olmo2Family();

} // namespace fsdp::checkpoint

#endif // FSDP_FAMILIES_FAMILYPARTS_H
