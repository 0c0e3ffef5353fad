//===- FileLockTest.cpp - Files that a process holds ----------------------===//
#include "fsdp/Support/FileLock.h"
#include "TemporaryFolder.h"
#include <cerrno>
#include <fcntl.h>
#include <unistd.h>

using namespace fsdp;
using namespace fsdp::test;

TEST(FileLock, IsHeldUntilItsDescriptorIsClosed) {
  TemporaryFolder folder;
  std::string path = folder.file("lock");
  int first = openLocked(path, O_RDWR | O_CREAT, LockWait::No);
  ASSERT_GE(first, 0);
  EXPECT_EQ(openLocked(path, O_RDWR, LockWait::No), -1);
  EXPECT_EQ(errno, EWOULDBLOCK);
  int unlocked = open(path.c_str(), O_RDONLY);
  EXPECT_FALSE(tryLock(unlocked));
  close(first);
  EXPECT_TRUE(tryLock(unlocked));
  close(unlocked);
}

TEST(FileLock, ANameThatIsGoneIsNotHeld) {
  TemporaryFolder folder;
  EXPECT_EQ(openLocked(folder.file("gone"), O_RDWR, LockWait::No), -1);
  EXPECT_EQ(errno, ENOENT);
  // A link to nowhere cannot be made again.
  std::string link = folder.file("link");
  std::filesystem::create_symlink("nowhere/lock", link);
  EXPECT_EQ(openLocked(link, O_RDWR | O_CREAT, LockWait::No), -1);
  EXPECT_EQ(errno, ENOENT);
}

TEST(FileLock, FoldersToo) {
  TemporaryFolder folder;
  int held = openLocked(folder.path, O_RDONLY | O_DIRECTORY, LockWait::Yes);
  ASSERT_GE(held, 0);
  EXPECT_EQ(openLocked(folder.path, O_RDONLY | O_DIRECTORY, LockWait::No), -1);
  EXPECT_EQ(errno, EWOULDBLOCK);
  close(held);
}

TEST(FileLock, SeveralMayHoldOne) {
  TemporaryFolder folder;
  std::string path = folder.file("lock");
  int first = openLocked(path, O_RDWR | O_CREAT, LockWait::No);
  int second = open(path.c_str(), O_RDWR);
  EXPECT_FALSE(tryShare(second));
  EXPECT_EQ(errno, EWOULDBLOCK);
  EXPECT_TRUE(tryShare(first));
  EXPECT_TRUE(tryShare(second));
  EXPECT_EQ(openLocked(path, O_RDWR, LockWait::No), -1);
  close(first);
  EXPECT_EQ(openLocked(path, O_RDWR, LockWait::No), -1);
  close(second);
  int third = openLocked(path, O_RDWR, LockWait::No);
  EXPECT_GE(third, 0);
  close(third);
}
