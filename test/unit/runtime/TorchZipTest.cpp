//===- TorchZipTest.cpp - The archives of torch.save ----------------------===//
#include "runtime/checkpoint/dcp/TorchZip.h"
#include "../Mutator.h"
#include "TemporaryFolder.h"
#include "fsdp/Artifact/Manifest.h"
#include "runtime/checkpoint/dcp/TorchSave.h"
#include "runtime/checkpoint/store/BlockChecksums.h"
#include <cstring>

using namespace fsdp;
using namespace fsdp::checkpoint;
using namespace fsdp::test;
using namespace std::string_literals;

namespace {

ZipSource source(const char *name, std::string text) {
  return {name, text.size(), [text](const auto &write) { write(text); }};
}

std::string archive(const std::vector<ZipSource> &entries) {
  std::string bytes;
  uint64_t size = writeTorchZip(
      entries, [&](std::string_view piece) { bytes.append(piece); });
  EXPECT_EQ(size, bytes.size());
  return bytes;
}

/// Two entries; the places of what a test damages.
struct Sample {
  std::string bytes =
      archive({source("data.pkl", "pickle"), source("data/0", "0123456789")});
  size_t central = bytes.find("PK\1\2");
  size_t secondCentral = bytes.find("PK\1\2", central + 4);
  size_t end64 = bytes.find("PK\6\6");
  size_t locator = bytes.find("PK\6\7");
  size_t end = bytes.find("PK\5\6");
};

std::string refusalOf(const std::string &bytes) {
  return messageOf([&] {
    TorchZip zip(bytes, "x.distcp");
    for (const ZipEntry &entry : zip.entries())
      zip.checkCrc(entry);
  });
}

/// Makes the 32-bit end say that the numbers stand in the 64-bit one.
void useEnd64(Sample &sample) {
  sample.bytes.replace(sample.end + 12, 4, "\xff\xff\xff\xff");
}

std::string tensorArchive(rt::DType type, const std::vector<int64_t> &shape,
                          const std::string &data) {
  std::string bytes;
  writeTorchTensor(
      type, shape, [&](const WriteBytes &write) { write(data); },
      [&](std::string_view piece) { bytes.append(piece); });
  return bytes;
}

struct Damage {
  const char *what;
  std::function<void(Sample &)> apply;
  const char *message;
};

} // namespace

TEST(TorchZip, ReadsWhatItWrites) {
  Sample sample;
  for (bool in64 : {false, true}) {
    if (in64)
      useEnd64(sample);
    TorchZip zip(sample.bytes, "x");
    ASSERT_EQ(zip.entries().size(), 2u);
    EXPECT_EQ(zip.find("data.pkl")->data, "pickle");
    EXPECT_EQ(zip.find("data/0")->data, "0123456789");
    EXPECT_EQ(zip.find("0"), nullptr);
    // As PyTorch aligns them.
    EXPECT_EQ((zip.find("data/0")->data.data() - sample.bytes.data()) % 64, 0);
    zip.checkCrc(*zip.find("data/0"));
  }
}

TEST(TorchZip, FindsOtherBytesByTheirChecksum) {
  Sample sample;
  sample.bytes[sample.bytes.find("0123456789")] = '1';
  EXPECT_EQ(refusalOf(sample.bytes),
            "x.distcp: damaged archive of torch.save: 'archive/data/0' has "
            "another checksum than was written");
}

TEST(TorchZip, ChecksNothingWhereThereIsNoChecksum) {
  std::string data(24, 'x');
  std::string bytes = tensorArchive(rt::DType::F32, {2, 3}, data);
  EXPECT_EQ(readTorchTensor(bytes, "x").crc32, crc32Of(data));
  // As torch.serialization.set_crc32_options(False) leaves it.
  for (size_t at = bytes.find("PK\1\2"); at != std::string::npos;
       at = bytes.find("PK\1\2", at + 4))
    bytes.replace(at + 16, 4, 4, '\0');
  EXPECT_EQ(refusalOf(bytes), "");
  EXPECT_EQ(readTorchTensor(bytes, "x").crc32, std::nullopt);
}

TEST(TorchZip, RefusesDamage) {
  auto put = [](size_t Sample::*place, size_t offset, std::string bytes) {
    return [=](Sample &s) {
      s.bytes.replace(s.*place + offset, bytes.size(), bytes);
    };
  };
  auto in64 = [=](size_t offset, const std::string &bytes) {
    return [=](Sample &s) {
      useEnd64(s);
      put(&Sample::end64, offset, bytes)(s);
    };
  };
  const std::string far8 = "\0\0\0\0\0\0\0\x40"s, most8(8, '\xff');
  const Damage cases[] = {
      {"empty", [](Sample &s) { s.bytes.clear(); }, "fewer than an archive"},
      {"cut in the middle", [](Sample &s) { s.bytes.resize(s.central + 5); },
       "truncated"},
      {"one byte short", [](Sample &s) { s.bytes.pop_back(); }, "truncated"},
      {"bytes behind", [](Sample &s) { s.bytes += "x"; }, "truncated"},
      {"not zip", [](Sample &s) { s.bytes = std::string(500, 'P'); },
       "not one"},
      {"directory behind the end", put(&Sample::end, 16, "\xff\xff\xff\x7f"),
       "its directory lies outside"},
      {"directory too long", put(&Sample::end, 12, "\xff\xff\0\0"s),
       "its directory lies outside"},
      {"more entries than fit", put(&Sample::end, 10, "\xf0\xff"),
       "too short for 65520 entries"},
      {"one entry more", put(&Sample::end, 10, "\3\0"s), "too short for 3"},
      {"parts in other files", put(&Sample::end, 4, "\1"), "in other files"},
      {"no 64-bit end",
       [=](Sample &s) {
         useEnd64(s);
         s.bytes[s.locator] = 'X';
       },
       "the place of its directory is missing"},
      {"64-bit end outside",
       [=](Sample &s) {
         useEnd64(s);
         s.bytes.replace(s.locator + 8, 8, most8);
       },
       "lies outside"},
      {"64-bit end of something else", in64(0, "XX"), "lies outside"},
      {"64-bit directory outside", in64(48, most8), "lies outside"},
      {"64-bit directory of 2^62 bytes", in64(40, far8), "lies outside"},
      {"2^62 entries", in64(32, far8), "too short for"},
      {"damaged directory", put(&Sample::central, 0, "XX"),
       "its directory is damaged"},
      {"name longer than the directory", put(&Sample::central, 28, "\xff\xff"),
       "its directory is damaged"},
      {"compressed", put(&Sample::central, 10, "\x08"), "is compressed"},
      {"two sizes", put(&Sample::central, 20, "\x01"), "is compressed"},
      {"encrypted", put(&Sample::central, 8, "\x09"), "is encrypted"},
      {"larger than the archive",
       [=](Sample &s) {
         put(&Sample::central, 20, "\0\0\0\x10"s)(s);
         put(&Sample::central, 24, "\0\0\0\x10"s)(s);
       },
       "'archive/data.pkl' lies outside"},
      {"size in a missing field",
       [=](Sample &s) {
         put(&Sample::central, 20, "\xff\xff\xff\xff")(s);
         put(&Sample::central, 24, "\xff\xff\xff\xff")(s);
       },
       "the size of 'archive/data.pkl' is missing"},
      {"header elsewhere", put(&Sample::central, 42, "\1"), "no header where"},
      {"header behind the end", put(&Sample::central, 42, "\0\0\0\x7f"s),
       "no header where"},
      {"two entries in one place", put(&Sample::secondCentral, 42, "\0\0\0\0"s),
       "is that of another entry"},
      {"other name in front", put(&Sample::central, 46, "X"),
       "is that of another entry"},
      {"other checksum", put(&Sample::central, 16, "XX"), "another checksum"},
      {"entries that overlap",
       [=](Sample &s) {
         put(&Sample::central, 20, "\x40")(s);
         put(&Sample::central, 24, "\x40")(s);
       },
       "'archive/data/0' overlaps 'archive/data.pkl'"},
  };
  for (const Damage &damage : cases) {
    Sample sample;
    damage.apply(sample);
    std::string message = refusalOf(sample.bytes);
    EXPECT_EQ(message.rfind("x.distcp: damaged archive of torch.save: ", 0), 0u)
        << damage.what << ": " << message;
    EXPECT_NE(message.find(damage.message), std::string::npos)
        << damage.what << ": " << message;
  }
}

TEST(TorchZip, RefusesNamesThatAreTwice) {
  EXPECT_NE(refusalOf(archive({source("a", "1"), source("a", "2")}))
                .find("'archive/a' is there twice"),
            std::string::npos);
}

TEST(TorchSave, ReadsWhatItWrites) {
  std::string data(2 * 3 * 2, 'x');
  std::string bytes = tensorArchive(rt::DType::BF16, {2, 1, 3}, data);
  TorchTensor tensor = readTorchTensor(bytes, "x");
  EXPECT_EQ(tensor.dtype, rt::DType::BF16);
  EXPECT_EQ(tensor.shape, (std::vector<int64_t>{2, 1, 3}));
  EXPECT_EQ(std::memcmp(tensor.data, data.data(), data.size()), 0);
  std::string number(8, '\0');
  number[0] = 5;
  EXPECT_EQ(readTorchInteger(tensorArchive(rt::DType::I64, {}, number), "x"),
            5);
  EXPECT_EQ(readTorchInteger(bytes, "x"), std::nullopt);
}

TEST(TorchSave, RefusesTensorsThatAreNone) {
  // Changes to the pickle, which keep its length.
  std::string good =
      tensorArchive(rt::DType::F32, {2, 3}, std::string(24, 'x'));
  auto changed = [&](const std::string &from, const std::string &to) {
    std::string bytes = good;
    EXPECT_EQ(from.size(), to.size());
    bytes.replace(bytes.find(from), to.size(), to);
    return messageOf([&] { readTorchTensor(bytes, "x"); });
  };
  const struct {
    std::string from, to;
    const char *message;
  } cases[] = {
      {"K\2K\3t(", "K\3K\2t(", "is not contiguous in row-major order"},
      {"K\2K\3t(", "K\2K\4t(", "is not contiguous in row-major order"},
      {"K\3K\1t", "K\1K\2t", "is not contiguous in row-major order"},
      {"(K\2K\3t(", "(K\xffK\3t(", "it lies outside of its bytes"},
      {"K\6t", "K\7t", "24 bytes, and not those of 7 elements of float32"},
      {"FloatStorage", "CharStoraged", "names 'torch.CharStoraged'"},
      {"storage", "storagE", "does not say where its bytes lie"},
      {"X\1\0\0\0000"s, "X\1\0\0\0001"s, "there is no entry 'data/1'"},
      {"QK\0"s, "QK\1", "it lies outside of its bytes"},
      {"QK\0"s, "QNN", "shape is no list of sizes"},
      {"QK\0"s, "0K\0"s, "it does not say where its bytes lie"},
      {"torch._utils\n_rebuild_tensor_v2", "torch._utils\n_rebuild_tensor_v9",
       "nothing of it was run"},
      {"collections\nOrderedDict", "subprocesss\ncheck_calls",
       "nothing of it was run"},
      {"little", "bigger", "highest byte first"},
      {"data.pkl", "dada.pkl", "header of 'archive/data.pkl'"},
  };
  for (const auto &c : cases) {
    std::string message = changed(c.from, c.to);
    EXPECT_NE(message.find(c.message), std::string::npos)
        << c.from << ": " << message;
  }
}

/// An error or a tensor whose bytes are all there.
TEST(TorchSave, DamageNeverCrashes) {
  std::string good =
      tensorArchive(rt::DType::F32, {2, 3}, std::string(24, 'x'));
  Mutator mutate(6, {"PK\1\2", "PK\5\6", "PK\3\4", "\xff\xff\xff\xff", "K\1",
                     "\x8a\x08", std::string(8, '\xff')});
  int accepted = 0;
  for (int i = 0; i < 20000; ++i) {
    std::string bytes = mutate(good);
    try {
      TorchTensor tensor = readTorchTensor(bytes, "x");
      int sum = 0;
      for (int64_t k = 0;
           k < rt::elementCount(tensor.shape) * sizeOf(tensor.dtype); ++k)
        sum += static_cast<int>(tensor.data[k]);
      EXPECT_GE(sum, 0);
      ++accepted;
    } catch (const Error &error) {
      EXPECT_STRNE(error.what(), "");
    }
  }
  // Paddings and data may be anything.
  EXPECT_GT(accepted, 100);
}
