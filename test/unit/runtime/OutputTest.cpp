//===- OutputTest.cpp - What fsdp-run writes while it runs ----------------===//
#include "TemporaryFolder.h"
#include "WithoutLocks.h"
#include "fsdp/Support/AtomicFile.h"
#include "fsdp/Support/FileLock.h"
#include "runtime/report/History.h"
#include "runtime/report/LineFile.h"
#include "runtime/train/FolderLock.h"
#include "runtime/train/Results.h"
#include <cmath>
#include <csignal>
#include <fcntl.h>
#include <sys/resource.h>
#include <unistd.h>

using namespace fsdp;
using namespace fsdp::rt;
using namespace fsdp::test;

/// The file after opening one with `content` and appending "{}\n".
static std::string appended(const std::string &content) {
  TemporaryFolder folder;
  std::string path = folder.write("lines", content);
  LineFile(path).append("{}\n");
  return readWholeFile(path, "lines");
}

TEST(LineFile, AppendsToWholeLines) {
  EXPECT_EQ(appended(""), "{}\n");
  EXPECT_EQ(appended("{\"step\": 1}\n"), "{\"step\": 1}\n{}\n");
  // A half line goes; a whole one gets its end; what is not ours stays.
  EXPECT_EQ(appended("{\"step\": 1}\n{\"st"), "{\"step\": 1}\n{}\n");
  EXPECT_EQ(appended("{\"st"), "{}\n");
  EXPECT_EQ(appended("{\"step\": 1}"), "{\"step\": 1}\n{}\n");
  EXPECT_EQ(appended("my notes"), "my notes\n{}\n");
  std::string large(3 << 20, '{');
  EXPECT_EQ(appended(large), large + "\n{}\n");
}

TEST(LineFile, AFailedAppendLeavesNothing) {
  TemporaryFolder folder;
  std::string path = folder.write("lines", "{}\n");
  LineFile file(path);
  rlimit before{}, small{};
  getrlimit(RLIMIT_FSIZE, &before);
  small = before;
  small.rlim_cur = 100;
  auto handler = std::signal(SIGXFSZ, SIG_IGN);
  setrlimit(RLIMIT_FSIZE, &small);
  std::string message =
      messageOf([&] { file.append(std::string(200, 'x') + "\n"); });
  setrlimit(RLIMIT_FSIZE, &before);
  std::signal(SIGXFSZ, handler);
  EXPECT_EQ(message, "cannot write '" + path + "': File too large");
  EXPECT_EQ(readWholeFile(path, "lines"), "{}\n");
}

TEST(LineFile, NamesTheFile) {
  EXPECT_EQ(messageOf([] { LineFile("/nowhere/x"); }),
            "cannot open '/nowhere/x': No such file or directory");
  EXPECT_EQ(messageOf([] { LineFile("/dev/full"); }),
            "'/dev/full' is no regular file");
}

/// A line as Metrics writes it; `loss` and `hex` as text.
static std::string stepLine(int step, const std::string &loss,
                            const std::string &hex) {
  return "{\"step\": " + std::to_string(step) + ", \"loss\": " + loss +
         ", \"loss_hex\": \"" + hex + "\", \"grad_norm\": null, " +
         "\"grad_norm_hex\": \"-nan\", \"seconds\": 1}\n";
}

TEST(History, ReadsAndCutsStepsThatAreNotFinite) {
  TemporaryFolder folder;
  std::string validation = "{\"validation\": {\"step\": 2, \"loss\": 1.25, "
                           "\"loss_hex\": \"0x1.4p+0\"}}\n";
  std::string kept = "{\"run\": {}}\n" + stepLine(1, "1.5", "0x1.8p+0") +
                     stepLine(2, "null", "nan") + validation +
                     stepLine(3, "null", "inf");
  std::string path = folder.write("lines", kept + stepLine(4, "null", "nan") +
                                               stepLine(5, "2", "0x1p+1"));
  History history = rewindMetrics(path, 3);
  EXPECT_EQ(history.linesCut, 2);
  ASSERT_EQ(history.validations.size(), 1u);
  EXPECT_EQ(history.validations[0].step, 2);
  EXPECT_EQ(history.validations[0].nats, 1.25);
  EXPECT_EQ(readWholeFile(path, "lines"), kept);
  ASSERT_EQ(history.steps.size(), 3u);
  EXPECT_EQ(history.steps[0].loss, 1.5);
  EXPECT_TRUE(std::isnan(history.steps[1].loss));
  EXPECT_TRUE(std::isinf(history.steps[2].loss));
  EXPECT_TRUE(std::isnan(history.steps[2].gradNorm.value()));
}

TEST(FolderLock, SaysWhoHoldsIt) {
  TemporaryFolder folder;
  std::string name = folder.file("");
  {
    FolderLock first(name, "bible");
    std::string message = messageOf([&] { FolderLock(name, "other"); });
    EXPECT_NE(message.find("is in use by process " + std::to_string(getpid()) +
                           " on "),
              std::string::npos)
        << message;
    EXPECT_NE(message.find("Z, with the artifact 'bible'; wait for it, or "
                           "choose another --job.dump_folder"),
              std::string::npos)
        << message;
  }
  EXPECT_TRUE(std::filesystem::is_empty(name));
  FolderLock again(name, "other");
}

// Anybody may write into the file: other types, no JSON, what moves a cursor.
TEST(FolderLock, ShowsAForeignHolderAsText) {
  TemporaryFolder folder;
  for (auto [text, who] :
       {std::pair("{\"process\": 12, \"host\": \"far\\u001b[2J\", \"since\": "
                  "\"a\\nfsdp-run: b\", \"artifact\": [1]}",
                  "process 12 on far\\x1b[2J since a\\nfsdp-run: b, with the "
                  "artifact '?'"),
        {"{\"process\": \"x\", \"host\": 3}", "another job"},
        {"{\"process\": -7}", "another job"},
        {"{\"process\": 1e300, \"host\": null}", "another job"},
        {"{\"process\": 18446744073709551615}", "another job"},
        {"{\"host\": \"far\"}", "another job"},
        {"[[[\xff", "another job"},
        {"", "another job"}}) {
    std::string file = folder.write("run.lock", text);
    int held = openLocked(file, O_RDWR, LockWait::No);
    ASSERT_GE(held, 0);
    EXPECT_EQ(messageOf([&] { FolderLock(folder.path, "other"); }),
              "the folder '" + folder.path + "' is in use by " + who +
                  "; wait for it, or choose another --job.dump_folder");
    close(held);
  }
}

TEST(FolderLock, LeavesForeignFilesAlone) {
  TemporaryFolder folder;
  std::string name = folder.file("run.lock");
  auto refusal = [&](const std::string &what) {
    return "'" + name + "' is " + what +
           " and would be overwritten; move it away, or choose another "
           "--job.dump_folder";
  };
  auto taken = [&] { FolderLock(folder.path, "bible"); };
  std::string mine = folder.write("mine", "precious");
  std::filesystem::create_symlink("mine", name);
  EXPECT_EQ(messageOf(taken), refusal("a symbolic link to another file"));
  EXPECT_EQ(readWholeFile(mine, "mine"), "precious");
  std::filesystem::remove(name);
  for (const char *text : {"my notes", "{}"}) {
    folder.write("run.lock", text);
    EXPECT_EQ(messageOf(taken), refusal("not the lock of a job"));
    EXPECT_EQ(readWholeFile(name, "run.lock"), text);
  }
  std::filesystem::remove(name);
  ASSERT_EQ(mkfifo(name.c_str(), 0666), 0);
  EXPECT_EQ(messageOf(taken), refusal("no regular file"));
  std::filesystem::remove(name);
  // What a job that was killed leaves behind.
  for (const char *text : {"", "{\"process\": 1, \"host\": \"far\"}\n"}) {
    folder.write("run.lock", text);
    EXPECT_EQ(messageOf(taken), "");
  }
}

TEST(FolderLock, NeedsLocks) {
  TemporaryFolder folder;
  std::string message;
  if (!withoutLocks([&] {
        message = messageOf([&] { FolderLock(folder.file(""), "bible"); });
      }))
    GTEST_SKIP() << "no filter of system calls here";
  EXPECT_NE(
      message.find("run.lock': Function not implemented; choose a "
                   "--job.dump_folder where files can be created and locked"),
      std::string::npos)
      << message;
}

TEST(Results, ScalarsByValueOthersInShort) {
  RangeInfo loss;
  loss.name = "loss";
  loss.bytes = 4;
  float value = 0.1f;
  EXPECT_EQ(describeRange(loss, reinterpret_cast<std::byte *>(&value)),
            "loss: f32: 0.100000001");
  RangeInfo logits;
  logits.name = "logits";
  logits.dtype = DType::BF16;
  logits.shape = logits.full = {2, 2};
  logits.bytes = 8;
  uint16_t values[] = {0x3f80, 0xc000, 0x4040, 0x7fc0}; // 1, -2, 3, NaN
  EXPECT_EQ(describeRange(logits, reinterpret_cast<std::byte *>(values)),
            "logits: bf16 2x2: min -2, max 3, mean 0.666667, 1 not finite, "
            "crc32 61e909cd");
  logits.full = {4, 2};
  EXPECT_NE(describeRange(logits, reinterpret_cast<std::byte *>(values))
                .find(", a part of the whole"),
            std::string::npos);
}
