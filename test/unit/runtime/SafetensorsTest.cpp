//===- SafetensorsTest.cpp - Tensors in a file ----------------------------===//
#include "fsdp/Data/Safetensors.h"
#include "TemporaryFolder.h"
#include "fsdp/Support/AtomicFile.h"
#include <cstring>

using namespace fsdp;
using namespace fsdp::rt;
using namespace fsdp::test;

static TensorView view(const char *name, DType type, std::vector<int64_t> shape,
                       const void *data) {
  return {name, type, std::move(shape), static_cast<const std::byte *>(data)};
}

/// A file with this header and so many bytes of data.
static std::string fileOf(const std::string &header, size_t dataBytes) {
  uint64_t length = header.size();
  return std::string(reinterpret_cast<const char *>(&length), 8) + header +
         std::string(dataBytes, '\0');
}

TEST(Safetensors, RoundTripInTheReferenceOrder) {
  TemporaryFolder folder;
  float f[3] = {1, 2, 3};
  int64_t i[1] = {7};
  uint16_t h[2] = {0x3f80, 0x4000}, half[1] = {0x3c00};
  std::string path = folder.file("t.safetensors");
  writeSafetensors(
      path,
      {view("h", DType::BF16, {2}, h), view("b", DType::F32, {}, f),
       view("a", DType::F32, {1, 2}, f + 1), view("i", DType::I64, {1}, i),
       view("half", DType::F16, {1}, half)},
      {{"rank", "0"}});
  std::string bytes = readWholeFile(path, "file");
  uint64_t length;
  std::memcpy(&length, bytes.data(), 8);
  // Types descend in the format's order, then names ascend; 8-byte aligned.
  EXPECT_EQ(length % 8, 0u);
  std::string header = bytes.substr(8, length);
  EXPECT_EQ(header.substr(0, header.find_last_not_of(' ') + 1),
            R"({"__metadata__":{"rank":"0"},)"
            R"("i":{"dtype":"I64","shape":[1],"data_offsets":[0,8]},)"
            R"("a":{"dtype":"F32","shape":[1,2],"data_offsets":[8,16]},)"
            R"("b":{"dtype":"F32","shape":[],"data_offsets":[16,20]},)"
            R"("h":{"dtype":"BF16","shape":[2],"data_offsets":[20,24]},)"
            R"("half":{"dtype":"F16","shape":[1],"data_offsets":[24,26]}})");
  SafetensorsFile file(path);
  ASSERT_EQ(file.tensors().size(), 5u);
  for (const TensorView &tensor : file.tensors())
    if (tensor.name == "a") {
      EXPECT_EQ(std::memcmp(tensor.data, f + 1, 8), 0);
    }
}

TEST(Safetensors, MalformedFilesAreRefused) {
  TemporaryFolder folder;
  auto error = [&](const std::string &bytes) {
    std::string path = folder.write("t", bytes);
    std::string message = messageOf([&] { SafetensorsFile file(path); });
    std::string prefix = "damaged safetensors file '" + path + "': ";
    EXPECT_EQ(message.substr(0, prefix.size()), prefix);
    return message.substr(std::min(prefix.size(), message.size()));
  };
  const std::string a =
      R"("a":{"dtype":"F32","shape":[2],"data_offsets":[0,8]})";
  EXPECT_EQ(error("1234"), "it is too short for a header");
  EXPECT_EQ(error(fileOf("{}", 0).replace(0, 1, "\x7f")),
            "its header is longer than the file");
  EXPECT_EQ(error(fileOf("[]", 0)), "its header is no JSON object");
  EXPECT_EQ(error(fileOf("{" + a + "," + a + "}", 8)),
            "its header: line 1, column " + std::to_string(a.size() + 5) +
                ": 'a' appears twice");
  EXPECT_EQ(error(fileOf(R"({"a":{"dtype":"F32","dtype":"I32","shape":[2],)"
                         R"("data_offsets":[0,8]}})",
                         8)),
            "its header: line 1, column 27: a: 'dtype' appears twice");
  EXPECT_EQ(error(fileOf(std::string(300000, '['), 0)),
            "its header: line 1, column 65: nested deeper than 64 levels");
  EXPECT_EQ(error(fileOf("{", 0)),
            "its header: line 1, column 1: this is not JSON: unexpected end of "
            "input; expected string literal");
  EXPECT_EQ(error(fileOf("{" + a + "}", 4)), "'a' lies outside the file");
  EXPECT_EQ(error(fileOf("{" + a + "}", 12)),
            "there are bytes after the last tensor");
  EXPECT_EQ(error(fileOf(R"({"a":{"dtype":"F32","shape":[2],)"
                         R"("data_offsets":[4,12]}})",
                         12)),
            "there is a hole or an overlap before 'a'");
  EXPECT_EQ(error(fileOf(R"({"a":{"dtype":"F32","shape":[3],)"
                         R"("data_offsets":[0,8]}})",
                         8)),
            "the bytes of 'a' do not fit its shape and type");
  EXPECT_EQ(error(fileOf(R"({"a":{"dtype":"Q3","shape":[3],)"
                         R"("data_offsets":[0,8]}})",
                         8)),
            "'a' has the unsupported type Q3");
  auto withOffsets = [&](const std::string &offsets) {
    return error(fileOf(R"({"a":{"dtype":"F32","shape":[2],)"
                        R"("data_offsets":)" +
                            offsets + "}}",
                        8));
  };
  for (const char *offsets : {"[0.5,8]", "[0,8.0]", "[-1,8]", "[\"0\",8]",
                              "{\"a\":0,\"b\":8}", "null"})
    EXPECT_EQ(withOffsets(offsets),
              "the data_offsets of 'a' is no list of whole numbers");
  EXPECT_EQ(withOffsets("[0,8,8]"),
            "the data_offsets of 'a' must be 2 numbers, not 3");
  EXPECT_EQ(withOffsets("[0]"),
            "the data_offsets of 'a' must be 2 numbers, not 1");
  EXPECT_EQ(error(fileOf(R"({"a":{"dtype":"F32","shape":{"x":2},)"
                         R"("data_offsets":[0,8]}})",
                         8)),
            "the shape of 'a' is no list of whole numbers");
  EXPECT_EQ(error(fileOf(R"({"a":{"dtype":"F32"}})", 8)),
            "the entry of 'a' is malformed");
  EXPECT_EQ(error(fileOf(R"({"a":7})", 0)), "the entry of 'a' is malformed");
  EXPECT_EQ(error(fileOf(R"({"a":{"dtype":4,"shape":[],)"
                         R"("data_offsets":[0,4]}})",
                         4)),
            "the entry of 'a' is malformed");
  EXPECT_EQ(error(""), "it is too short for a header");
  EXPECT_EQ(error(fileOf("", 0))
                .find("its header: line 1, column 1: this is "
                      "not JSON: unexpected end of input"),
            0u);
  EXPECT_EQ(error(fileOf("{\"\xff\":{}}", 0)),
            "its header: line 1, column 3: this is not JSON: invalid string: "
            "ill-formed UTF-8 byte");
  for (const char *header : {"{\"\":{}}", "{\"a\\nb\":{}}"})
    EXPECT_EQ(error(fileOf(header, 0)),
              "a name of a tensor is no line of text");
  EXPECT_EQ(error(fileOf(" {}", 0)), "its header is no JSON object");
  EXPECT_EQ(withOffsets("[8,0]"), "'a' lies outside the file");
  EXPECT_EQ(withOffsets("[0,18446744073709551615]"),
            "'a' lies outside the file");
  auto withShape = [&](const std::string &shape) {
    return error(fileOf(R"({"a":{"dtype":"F32","shape":)" + shape +
                            R"(,"data_offsets":[0,8]}})",
                        8));
  };
  EXPECT_EQ(withShape("[-2]"), "the shape of 'a' is no list of whole numbers");
  EXPECT_EQ(withShape("[4294967296,0]"), "'a' has an impossible shape");
  EXPECT_EQ(withShape("[4294967295,4294967295,0]"),
            "'a' has an impossible shape");
  EXPECT_EQ(error(fileOf("{" + a +
                             R"(,"b":{"dtype":"F32","shape":[2],)"
                             R"("data_offsets":[4,12]}})",
                         12)),
            "there is a hole or an overlap before 'b'");
  for (const char *metadata : {"7", "[]", R"({"a":1})"})
    EXPECT_EQ(
        error(fileOf(R"({"__metadata__":)" + std::string(metadata) + "}", 0)),
        "its __metadata__ is no table of texts");
}
