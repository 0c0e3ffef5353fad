//===- ExplainTest.cpp - What an exception means to a user ----------------===//
#include "fsdp/Support/Explain.h"
#include "TemporaryFolder.h"
#include "fsdp/Support/Paths.h"
#include <system_error>

using namespace fsdp;
using namespace fsdp::test;

TEST(Explain, SaysWhatWasWantedAndARemedy) {
  EXPECT_EQ(explain(Error("as it is")), "as it is");
  EXPECT_EQ(explain(std::bad_alloc()).rfind("out of memory: ", 0), 0u);
  std::error_code again =
      std::make_error_code(std::errc::resource_unavailable_try_again);
  EXPECT_EQ(explain(std::system_error(again)).rfind("cannot start a thread", 0),
            0u);
  std::string longName(300, 'a');
  try {
    (void)std::filesystem::exists(longName);
    FAIL() << "a file system that takes such names";
  } catch (const std::exception &error) {
    EXPECT_EQ(explain(error), "cannot use '" + longName +
                                  "': File name too long; name a path that "
                                  "can be reached");
  }
}

TEST(Paths, NeedTheCurrentDirectory) {
  std::filesystem::path before = std::filesystem::current_path();
  EXPECT_EQ(absolutePath("/a/../b"), "/a/../b");
  EXPECT_EQ(absolutePath(""), "");
  EXPECT_EQ(absolutePath("a"), (before / "a").string());
  TemporaryFolder folder;
  std::filesystem::create_directory(folder.file("gone"));
  std::filesystem::current_path(folder.file("gone"));
  std::filesystem::remove(folder.file("gone"));
  std::string message = messageOf([] { absolutePath("a"); });
  std::filesystem::current_path(before);
  EXPECT_EQ(message, "cannot tell where 'a' is, because the current directory "
                     "cannot be read: No such file or directory; change to a "
                     "directory that exists");
}
