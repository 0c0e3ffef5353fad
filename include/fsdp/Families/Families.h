//===- Families.h - Models as others write them -----------------*- C++ -*-===//
//
// What must be known of a family of models: which mechanisms of a decoder it
// has, in which sizes it is published, and, to read and write the weights of
// Hugging Face, the names of its tensors here and there, their shapes, which
// of them have rows whose order is a convention, and what its config.json
// says. A family is one table (Families.cpp); nothing else here, in the
// decoder or in the readers and writers knows its name.
//
//===----------------------------------------------------------------------===//
#ifndef FSDP_FAMILIES_FAMILIES_H
#define FSDP_FAMILIES_FAMILIES_H

#include "fsdp/Artifact/Manifest.h"
#include "fsdp/Families/DecoderConfig.h"
#include <list>
#include <string>
#include <vector>

namespace fsdp::checkpoint {

/// The fields of a model, as what they are. All throw fsdp::Error that names
/// the field.
class Fields {
public:
  explicit Fields(const rt::ModelInfo &model) : model(model) {}

  /// A size, from 0 on.
  int64_t integer(const std::string &key) const;
  double number(const std::string &key) const;
  bool boolean(const std::string &key) const;
  /// "n_heads*head_dim": a size, or a product of sizes.
  int64_t product(const std::string &text) const;
  const std::string &text(const std::string &key) const;

private:
  [[noreturn]] void refuse(const std::string &key, const char *what) const;

  const rt::ModelInfo &model;
};

/// A kind of tensor. A `*` in both names stands for the number of a layer;
/// such kinds stand next to each other in the table.
///
/// Kinds of one `theirs` stand next to each other too. They are the rows of one
/// tensor of files, in the order of the table; the other dimensions are alike.
struct FamilyTensor {
  const char *ours, *theirs;
  std::vector<const char *> shape; // ours: products of fields
  /// Of every head_dim rows, so many at the beginning are rotary pairs: two
  /// each, which are neighbours, or the same places of the halves of these
  /// rows. A product of fields; of the value 0 all rows of a head. Null: rows
  /// are as in files.
  const char *rotary = nullptr;
  /// Of which tensor (ours) it is another use where the model is tied.
  const char *tiedTo = nullptr;
  /// Files have [in, out] where ours is [out, in].
  bool isTransposed = false;
  /// A boolean field; where it is false, there is no such tensor.
  const char *when = nullptr;
  /// What files that keep the parts of `theirs` apart call this one. Such
  /// files are refused; the name is for the message.
  const char *apart = nullptr;
};

/// What becomes of a key of config.json.
enum class KeyRole {
  Used,     // it describes the model
  Harmless, // it does not change what is computed from given weights
  Fixed,    // the model is one of its values
  Dropout,  // a rate; training goes without, and a warning says so
};

struct ConfigKey {
  const char *name;
  KeyRole role;
  /// JSON of the values that a fixed key may have. The first is the default,
  /// what is said to be expected, and what is written.
  std::vector<const char *> values = {};
  const char *why = ""; // the others are refused
  bool isWritten = false;
};

/// A key of config.json that is a field of the model.
struct ConfigField {
  enum class Type { Integer, Number, Boolean, Name };
  const char *key, *field;
  Type type;
  /// The value here of a key that is left out, or what it is equal to then: a
  /// field, or a number times one, "4*dim". Null: it must be there.
  const char *fallback = nullptr;
  int64_t max = 0; // of an integer, which is at least 1
  /// The same of a key that is null there; such a value is written as null.
  /// Null: a key that is null is one that is left out.
  const char *ifNull = nullptr;
  /// Of a name: how files spell it, and how the field does. Of several that
  /// mean the same the first is written.
  std::vector<std::pair<const char *, const char *>> names = {};
};

/// Which layers see a window of keys where config.json lists no layer_types.
enum class WindowRule {
  None,      // no layer does, and keys that say otherwise are refused
  AllLayers, // all do if there is sliding_window; layer_types is never used
  Even,      // layers 0, 2, 4, …
  FromLayer, // with use_sliding_window, those from max_window_layers on
};

/// A field of the models of a family, by its key in decoderFields().
struct FamilyField {
  const char *key;
  /// Stated only where it is not what the family has otherwise, so that
  /// artifacts and checkpoints from before there was the field say the same.
  bool isRare = false;
};

/// A model that is known by name.
struct FamilySize {
  const char *name;        // "llama3_8b"
  const char *description; // "Llama 3.1 8B"
  int64_t seqLen;          // what it is traced for if the caller does not say
  DecoderConfig config;
};

/// A family. Rotary keys of its config.json are rope_theta and rope_scaling
/// (transformers 4) or rope_parameters (5); what they are here is in
/// RopeConfig.cpp, and what the keys of windows are in WindowConfig.cpp.
struct Family {
  const char *name = nullptr;      // "llama3"
  const char *modelType = nullptr; // "llama", of config.json
  const char *title = nullptr;     // "Llama 2, 3 and CodeLlama"
  /// In the order in which the module of transformers has them.
  std::vector<FamilyTensor> tensors;
  /// Endings of names in files that hold no weights.
  std::vector<const char *> ignored;
  std::vector<ConfigKey> keys;
  std::vector<ConfigField> fields;

  /// Its mechanisms, and the values of fields that nothing states.
  DecoderConfig base;
  std::vector<FamilyField> modelFields;
  std::vector<FamilySize> sizes;
  WindowRule windows = WindowRule::None;
  int64_t defaultWindow = 0; // of a file without sliding_window
  /// rope_type: how files spell it, and kRopeTypes. "default" has no stretch.
  std::vector<std::pair<const char *, const char *>> ropeTypes = {};
  /// What names of files begin with, except in files that leave it out
  /// everywhere; null: nothing.
  const char *prefix = nullptr;
  /// The id of padding that transformers takes where a file names none, which
  /// has to be in the vocabulary; -1: it takes none.
  int64_t defaultPadToken = -1;
};

const std::list<Family> &families();

/// The tables as Markdown: keys that are used, fixed and harmless, and tensors.
std::string familyReference();

/// Makes a family known as long as the object lives, for tests with tables of
/// their own. No other thread may look at the families when it comes or goes.
class AddedFamily {
public:
  explicit AddedFamily(Family family);
  ~AddedFamily();
  AddedFamily(const AddedFamily &) = delete;
  AddedFamily &operator=(const AddedFamily &) = delete;

private:
  std::list<Family>::iterator place;
};
/// Null if there is none.
const Family *findFamily(const std::string &name);
/// Throws fsdp::Error that lists those there are.
const Family &familyOf(const rt::ModelInfo &model);

/// The decoder that fields are of; what they leave out is as in the family.
/// Throws fsdp::Error that names the field.
DecoderConfig decoderOf(const rt::ModelInfo &model);

/// The value of the field `key` as text.
std::string fieldText(const DecoderConfig &config, const std::string &key);

/// Whether two texts are the same, or the same number.
bool isSameValue(const std::string &a, const std::string &b);

/// A tensor of one model.
struct ModelTensor {
  std::string ours, theirs, apart;
  std::vector<int64_t> shape; // ours
  const FamilyTensor *kind;
};
/// All tensors of a model of `family`, in the order of transformers; also those
/// that are absent because the model is tied. Throws fsdp::Error.
std::vector<ModelTensor> tensorsOf(const Family &family,
                                   const rt::ModelInfo &model);

/// A tensor of files: one of the model's, or several, whose rows it has one
/// after another.
struct FileTensor {
  std::string name;
  std::vector<int64_t> shape; // in files
  std::vector<ModelTensor> parts;

  const FamilyTensor &kind() const { return *parts.front().kind; }
};
/// The same tensors as files have them. Throws fsdp::Error, also if the parts
/// of a tensor do not fit together.
std::vector<FileTensor> fileTensorsOf(const Family &family,
                                      const rt::ModelInfo &model);

/// Whether the family has tensors with rotary rows.
bool hasRotaryRows(const Family &family);
/// Whether rotary pairs are the halves of a head, as Hugging Face has them.
bool rotatesHalves(const rt::ModelInfo &model);

/// Rows that are heads.
struct RotaryRows {
  int64_t headDim = 0; // rows of a head
  int64_t part = 0;    // of these, the first ones are rotary pairs
};
/// Those of a tensor whose kind has rotary rows. Throws fsdp::Error if its rows
/// are no heads, or have no pairs.
RotaryRows rotaryRowsOf(const ModelTensor &tensor, const rt::ModelInfo &model);

/// Where row `i` lies in a file of the other rotary layout; `halves`: the
/// layout of the file.
int64_t rotaryRow(int64_t i, RotaryRows rows, bool halves);

} // namespace fsdp::checkpoint

#endif // FSDP_FAMILIES_FAMILIES_H
