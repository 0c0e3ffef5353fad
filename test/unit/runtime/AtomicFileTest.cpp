//===- AtomicFileTest.cpp - Files that are whole or absent ----------------===//
#include "fsdp/Support/AtomicFile.h"
#include "TemporaryFolder.h"
#include "fsdp/Support/MappedFile.h"
#include "fsdp/Support/Signals.h"
#include <algorithm>
#include <atomic>
#include <csignal>
#include <fcntl.h>
#include <linux/magic.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/vfs.h>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>

using namespace fsdp;
using namespace fsdp::test;
namespace fs = std::filesystem;

static std::string read(const std::string &path) {
  return readWholeFile(path, "file");
}

static unsigned modeOf(const std::string &path) {
  struct stat status = {};
  EXPECT_EQ(stat(path.c_str(), &status), 0);
  return status.st_mode & 07777;
}

/// Whether the folder holds this file and nothing else.
static bool holdsOnly(const TemporaryFolder &folder, const std::string &name) {
  auto entries = fs::directory_iterator(folder.path);
  return fs::exists(folder.file(name)) &&
         std::distance(begin(entries), end(entries)) == 1;
}

/// Runs `action` in a child and returns how that ended, as waitpid does.
template <typename Action> static int inChild(Action action) {
  pid_t child = fork();
  if (child == 0) {
    action();
    _exit(0);
  }
  int status = -1;
  waitpid(child, &status, 0);
  return status;
}

static bool endedBy(int status, int signal) {
  return WIFSIGNALED(status) && WTERMSIG(status) == signal;
}

//===----------------------------------------------------------------------===//
// Regular files
//===----------------------------------------------------------------------===//

TEST(AtomicFile, NothingIsLeftWithoutACommit) {
  TemporaryFolder folder;
  {
    AtomicFile file(folder.file("x"));
    file.write("half");
  }
  EXPECT_TRUE(fs::is_empty(folder.path));
  writeFileAtomically(folder.file("x"), "whole");
  EXPECT_EQ(read(folder.file("x")), "whole");
  EXPECT_TRUE(holdsOnly(folder, "x"));
  EXPECT_EQ(messageOf([] { AtomicFile file("/nowhere/x"); }),
            "cannot create '/nowhere/x': No such file or directory");
  EXPECT_EQ(messageOf([&] { AtomicFile file(folder.path); }),
            "cannot write '" + folder.path + "': Is a directory");
}

TEST(AtomicFile, WritersAtTheSameTimeDoNotMix) {
  TemporaryFolder folder;
  AtomicFile first(folder.file("x")), second(folder.file("x"));
  first.write("first");
  second.write("second");
  first.commit();
  EXPECT_EQ(read(folder.file("x")), "first");
  second.commit();
  EXPECT_EQ(read(folder.file("x")), "second");
  EXPECT_TRUE(holdsOnly(folder, "x"));
}

TEST(AtomicFile, PermissionsAreKeptAndNewOnesFollowTheUmask) {
  TemporaryFolder folder;
  std::string path = folder.write("x", "old");
  fs::permissions(path, fs::perms(0640));
  writeFileAtomically(path, "new");
  EXPECT_EQ(modeOf(path), 0640u);
  mode_t before = umask(027);
  writeFileAtomically(folder.file("y"), "new");
  AtomicFile program(folder.file("z"), 0777);
  umask(before);
  program.commit();
  EXPECT_EQ(modeOf(folder.file("y")), 0640u);
  EXPECT_EQ(modeOf(folder.file("z")), 0750u);
}

TEST(AtomicFile, AWriteProtectedFileIsNotReplaced) {
  TemporaryFolder folder;
  std::string path = folder.write("x", "old");
  fs::permissions(path, fs::perms(0444));
  fs::permissions(folder.path, fs::perms(0777));
  // Root may write everything, so the test is nobody.
  int status = inChild([&] {
    if (geteuid() == 0 && seteuid(65534) != 0)
      _exit(2);
    std::string said = messageOf([&] { writeFileAtomically(path, "new"); });
    _exit(said == "cannot write '" + path + "': Permission denied" ? 0 : 1);
  });
  EXPECT_EQ(status, 0);
  EXPECT_EQ(read(path), "old");
}

TEST(AtomicFile, TheLongestNamesWork) {
  TemporaryFolder folder;
  std::string path = folder.file(std::string(255, 'x'));
  writeFileAtomically(path, "whole");
  EXPECT_EQ(read(path), "whole");
}

TEST(AtomicFile, LinksAreFollowed) {
  TemporaryFolder folder;
  fs::create_directory(folder.file("d"));
  std::string path = folder.file("link");
  // A link to a file that is not there yet, of another folder.
  fs::create_symlink("d/x", path);
  for (const char *text : {"first", "second"}) {
    writeFileAtomically(path, text);
    EXPECT_TRUE(fs::is_symlink(path));
    EXPECT_FALSE(fs::is_symlink(folder.file("d/x")));
    EXPECT_EQ(read(folder.file("d/x")), text);
  }
  fs::create_symlink("circle", folder.file("circle"));
  EXPECT_EQ(messageOf([&] { AtomicFile file(folder.file("circle")); }),
            "cannot create '" + folder.file("circle") +
                "': Too many levels of symbolic links");
}

//===----------------------------------------------------------------------===//
// What is no regular file
//===----------------------------------------------------------------------===//

/// A device of our own: a mistake here must not cost the machine its own.
static bool makeDevice(const std::string &path, int minor) {
  return mknod(path.c_str(), S_IFCHR | 0666, makedev(1, minor)) == 0;
}

TEST(AtomicFile, DevicesStayDevices) {
  TemporaryFolder folder;
  std::string path = folder.file("null");
  if (!makeDevice(path, 3))
    GTEST_SKIP() << "devices cannot be made here";
  writeFileAtomically(path, "text");
  EXPECT_TRUE(fs::is_character_file(path));
  EXPECT_TRUE(holdsOnly(folder, "null"));
}

TEST(AtomicFile, PipesGetTheText) {
  TemporaryFolder folder;
  std::string path = folder.file("pipe"), got;
  ASSERT_EQ(mkfifo(path.c_str(), 0600), 0);
  std::thread reader([&] { got = read(path); });
  writeFileAtomically(path, "text");
  reader.join();
  EXPECT_EQ(got, "text");
  EXPECT_TRUE(fs::is_fifo(path));
}

TEST(AtomicFile, DescriptorsAreWrittenWhereTheyStand) {
  TemporaryFolder folder;
  std::string path = folder.file("x");
  int file = open(path.c_str(), O_WRONLY | O_CREAT, 0600);
  ASSERT_EQ(write(file, "head ", 5), 5);
  writeFileAtomically("/proc/self/fd/" + std::to_string(file), "text");
  fs::create_symlink("/dev/fd/" + std::to_string(file), folder.file("link"));
  writeFileAtomically(folder.file("link"), " more");
  close(file);
  EXPECT_EQ(read(path), "head text more");
}

TEST(AtomicFile, AFullDeviceIsAnError) {
  TemporaryFolder folder;
  std::string path = folder.file("full");
  if (!makeDevice(path, 7))
    GTEST_SKIP() << "devices cannot be made here";
  EXPECT_EQ(messageOf([&] { writeFileAtomically(path, "text"); }),
            "cannot write '" + path + "': No space left on device");
}

TEST(AtomicFile, ALimitOnSizesIsAnErrorAndLeavesNothing) {
  TemporaryFolder folder;
  std::string path = folder.write("x", "old");
  int status = inChild([&] {
    rlimit limit{4096, 4096};
    setrlimit(RLIMIT_FSIZE, &limit);
    std::string text(1 << 16, 'x');
    std::string said = messageOf([&] { writeFileAtomically(path, text); });
    _exit(said == "cannot write '" + path + "': File too large" ? 0 : 1);
  });
  EXPECT_EQ(status, 0);
  EXPECT_EQ(read(path), "old");
  EXPECT_TRUE(holdsOnly(folder, "x"));
}

//===----------------------------------------------------------------------===//
// Past the cache
//===----------------------------------------------------------------------===//

/// Pages of a file that the system's cache holds.
static size_t cachedPages(const std::string &path, size_t bytes) {
  int descriptor = open(path.c_str(), O_RDONLY);
  void *mapped = mmap(nullptr, bytes, PROT_READ, MAP_SHARED, descriptor, 0);
  close(descriptor);
  EXPECT_NE(mapped, MAP_FAILED);
  std::vector<unsigned char> pages((bytes + 4095) / 4096);
  EXPECT_EQ(mincore(mapped, bytes, pages.data()), 0);
  munmap(mapped, bytes);
  return static_cast<size_t>(
      std::count_if(pages.begin(), pages.end(),
                    [](unsigned char page) { return (page & 1) != 0; }));
}

/// Whether files in the folder have disk blocks of their own.
static bool isOnDisk(const TemporaryFolder &folder) {
  struct statfs status = {};
  return statfs(folder.path.c_str(), &status) == 0 &&
         (status.f_type == EXT4_SUPER_MAGIC ||
          status.f_type == XFS_SUPER_MAGIC);
}

TEST(AtomicFile, PastTheCacheNoByteIsLost) {
  TemporaryFolder folder;
  std::string text;
  for (size_t i = 0; text.size() < (size_t{9} << 20); ++i)
    text += std::to_string(i * i) + ' ';
  std::string_view left = text;
  AtomicFile file(folder.file("x"));
  file.bypassCache();
  // Pieces of all sizes, one beyond what is collected at once.
  for (size_t size = 1; !left.empty(); size = 3 * size + 1) {
    file.write(left.substr(0, size));
    left.remove_prefix(std::min(size, left.size()));
  }
  file.sync();
  size_t whole = text.size();
  file.write("and more");
  file.commit();
  size_t cached = cachedPages(folder.file("x"), whole);
  EXPECT_TRUE(read(folder.file("x")) == text + "and more");
  EXPECT_TRUE(holdsOnly(folder, "x"));
  if (!isOnDisk(folder))
    GTEST_SKIP() << "no byte is lost; the cache of " << folder.path
                 << " is not looked at, which is neither ext4 nor XFS";
  EXPECT_LT(cached, whole / 4096 / 2);
}

// Room comes again after a write that failed: no later one goes on without
// the bytes that were lost.
TEST(AtomicFile, NothingIsCommittedAfterAFailure) {
  TemporaryFolder folder;
  for (bool bypasses : {false, true}) {
    std::string path = folder.write("x", "old");
    int status = inChild([&] {
      rlimit limit{100 << 10, RLIM_INFINITY};
      setrlimit(RLIMIT_FSIZE, &limit);
      AtomicFile file(path);
      if (bypasses)
        file.bypassCache();
      std::string text(size_t{8} << 20, 'x');
      std::string said = messageOf([&] { file.write(text); });
      limit.rlim_cur = RLIM_INFINITY;
      setrlimit(RLIMIT_FSIZE, &limit);
      bool fails = said == "cannot write '" + path + "': File too large";
      fails &= messageOf([&] { file.write("more"); }) == said;
      fails &= messageOf([&] { file.flush(); }) == said;
      fails &= messageOf([&] { file.sync(); }) == said;
      fails &= messageOf([&] { file.commit(); }) == said;
      _exit(fails ? 0 : 1);
    });
    EXPECT_EQ(status, 0) << bypasses;
    EXPECT_EQ(read(path), "old") << bypasses;
  }
}

TEST(AtomicFile, PastTheCacheALimitIsNoticed) {
  TemporaryFolder folder;
  std::string path = folder.write("x", "old");
  int status = inChild([&] {
    // Not a whole number of blocks: what is after a part of one is refused
    // with another error first.
    rlimit limit{(5 << 20) + 100, (5 << 20) + 100};
    setrlimit(RLIMIT_FSIZE, &limit);
    AtomicFile file(path);
    file.bypassCache();
    std::string text(size_t{16} << 20, 'x');
    std::string said = messageOf([&] { file.write(text); });
    _exit(said == "cannot write '" + path + "': File too large" ? 0 : 1);
  });
  EXPECT_EQ(status, 0);
  EXPECT_EQ(read(path), "old");
}

//===----------------------------------------------------------------------===//
// Signals
//===----------------------------------------------------------------------===//

// A shell's background jobs ignore some of these, and their children with them.
[[maybe_unused]] static const bool kHasDefaultSignals = [] {
  for (int signal : {SIGINT, SIGTERM, SIGHUP})
    std::signal(signal, SIG_DFL);
  return true;
}();

TEST(AtomicFile, ASignalRemovesWhatIsHalfWritten) {
  for (int signal : {SIGINT, SIGTERM, SIGHUP}) {
    TemporaryFolder folder;
    int status = inChild([&] {
      AtomicFile file(folder.file("x"));
      file.write("half");
      raise(signal);
    });
    EXPECT_TRUE(endedBy(status, signal)) << signal;
    EXPECT_TRUE(fs::is_empty(folder.path)) << signal;
  }
}

TEST(AtomicFile, IgnoredAndHandledSignalsStaySo) {
  TemporaryFolder folder;
  int status = inChild([&] {
    std::signal(SIGHUP, SIG_IGN);
    std::signal(SIGTERM, [](int) { _exit(7); });
    AtomicFile file(folder.file("x"));
    raise(SIGHUP);
    raise(SIGTERM);
  });
  EXPECT_TRUE(WIFEXITED(status));
  EXPECT_EQ(WEXITSTATUS(status), 7);
}

// What a killed writer left is removed by name; what somebody writes is not.
TEST(AtomicFile, OnlyPartialFilesOfTheDeadAreRemoved) {
  TemporaryFolder folder;
  std::string path = folder.file("x");
  int status = inChild([&] {
    AtomicFile file(path);
    file.write("half");
    raise(SIGKILL);
  });
  EXPECT_TRUE(endedBy(status, SIGKILL));
  EXPECT_FALSE(fs::is_empty(folder.path));
  folder.write("other.partial-1", "");
  AtomicFile living(path);
  removePartialFiles(path);
  living.write("whole");
  living.commit();
  EXPECT_EQ(read(path), "whole");
  fs::remove(folder.file("other.partial-1"));
  EXPECT_TRUE(holdsOnly(folder, "x"));
}

TEST(DeferredSignals, ComeAfterTheWorkIsUndone) {
  TemporaryFolder folder;
  std::string path = folder.write("work", "");
  int status = inChild([&] {
    DeferredSignals outer;
    {
      DeferredSignals inner;
      raise(SIGINT);
    }
    if (DeferredSignals::pending() == SIGINT)
      fs::remove(path);
  });
  EXPECT_TRUE(endedBy(status, SIGINT));
  EXPECT_TRUE(fs::is_empty(folder.path));
}

static volatile std::sig_atomic_t answered = 0;
static void answer(int signal) {
  if (answered != 0)
    _exit(7);
  answered = signal;
}

// A run that saves: what came before is pending, of any kind, and a second one
// is the handler's.
TEST(DeferredSignals, LeaveAHandlerThatNotes) {
  for (int signal : {SIGTERM, SIGUSR1}) {
    int status = inChild([&] {
      std::signal(signal, answer);
      DeferredSignals::leaveTo(answer, [] { return int(answered); });
      raise(signal);
      DeferredSignals signals;
      bool interrupts = false;
      try {
        DeferredSignals::throwIfPending();
      } catch (const Interrupted &) {
        interrupts = true;
      }
      if (!interrupts || DeferredSignals::pending() != signal)
        _exit(1);
      raise(signal);
      _exit(2);
    });
    EXPECT_TRUE(WIFEXITED(status));
    EXPECT_EQ(WEXITSTATUS(status), 7) << signal;
  }
}

TEST(DeferredSignals, AreSentOn) {
  int status = inChild([] {
    pid_t child = fork();
    if (child == 0) {
      setsid();
      for (;;)
        pause();
    }
    DeferredSignals signals;
    // Come before the child is known, and sent to it all the same.
    raise(SIGTERM);
    DeferredSignals::forwardTo(child);
    int ended = 0;
    waitpid(child, &ended, 0);
    if (!endedBy(ended, SIGTERM))
      _exit(1);
  });
  EXPECT_TRUE(endedBy(status, SIGTERM));
}

static std::atomic<pid_t> handledBy{0};
static void noteThread(int) { handledBy = gettid(); }

// oneDNN's products may have their stack pointer in the heap.
TEST(OwnThreadForSignals, RunsTheHandlersOfOthers) {
  for (int signal : {SIGTERM, SIGUSR1, SIGALRM}) {
    int status = inChild([&] {
      handleSignalsInOwnThread();
      std::signal(signal, noteThread);
      std::thread other([signal] { // inherits what is blocked
        for (int i = 0; i < 100; ++i) {
          handledBy = 0;
          kill(getpid(), signal);
          while (handledBy == 0)
            std::this_thread::yield();
          if (handledBy == getpid() || handledBy == gettid())
            _exit(1);
        }
      });
      other.join();
    });
    EXPECT_EQ(status, 0) << signal;
  }
}

TEST(OwnThreadForSignals, EndsTheProcess) {
  TemporaryFolder folder;
  std::string path = folder.write("work", "");
  int status = inChild([&] {
    handleSignalsInOwnThread();
    RemovedOnSignal removed(path.c_str());
    kill(getpid(), SIGTERM);
    for (;;)
      pause();
  });
  EXPECT_TRUE(endedBy(status, SIGTERM));
  EXPECT_TRUE(fs::is_empty(folder.path));
}

// Where the work is undone, and not later.
TEST(OwnThreadForSignals, ComesAfterTheWorkIsUndone) {
  int status = inChild([] {
    handleSignalsInOwnThread();
    {
      DeferredSignals signals;
      kill(getpid(), SIGINT);
      while (DeferredSignals::pending() == 0)
        std::this_thread::yield();
    }
    _exit(1);
  });
  EXPECT_TRUE(endedBy(status, SIGINT));
}

//===----------------------------------------------------------------------===//
// Reading
//===----------------------------------------------------------------------===//

TEST(ReadWholeFile, NamesWhatCannotBeRead) {
  TemporaryFolder folder;
  EXPECT_EQ(messageOf([&] { readWholeFile(folder.path, "the plan"); }),
            "cannot read the plan '" + folder.path + "': Is a directory");
  std::string text(100000, 'x');
  EXPECT_EQ(read(folder.write("x", text)), text);
  EXPECT_EQ(read(folder.write("empty", "")), "");
}

TEST(ReadWholeFile, OfOthersRegularFilesAloneAreRead) {
  TemporaryFolder folder;
  const std::string pipe = folder.file("pipe");
  ASSERT_EQ(mkfifo(pipe.c_str(), 0600), 0);
  for (const std::string &path : {pipe, std::string("/dev/zero")}) {
    const std::string message =
        "cannot read the index '" + path + "': it is no regular file";
    EXPECT_EQ(
        messageOf([&] { readWholeFile(path, "the index", FileKind::Regular); }),
        message);
    EXPECT_EQ(
        messageOf([&] { MappedFile(path, "the index", FileKind::Regular); }),
        message);
  }
  EXPECT_EQ(messageOf([&] {
              readWholeFile(folder.path, "the index", FileKind::Regular);
            }),
            "cannot read the index '" + folder.path + "': Is a directory");
  std::string file = folder.write("x", "text");
  EXPECT_EQ(readWholeFile(file, "the index", FileKind::Regular), "text");
}
