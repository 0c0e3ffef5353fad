//===- LaunchTest.cpp - Finding the job and explaining its end ------------===//
#include "fsdp/Launch/Launch.h"
#include "TemporaryFolder.h"
#include "fsdp/Core/Variables.h"
#include "fsdp/Rendezvous/Environment.h"
#include "runtime/launch/JobOutput.h"
#include "runtime/launch/OutputRelay.h"
#include "runtime/liveness/ProcessState.h"
#include <csignal>
#include <sys/wait.h>
#include <tuple>
#include <unistd.h>

using namespace fsdp;
using namespace fsdp::rt;
using namespace fsdp::test;

namespace {

/// An environment with no launcher but what a test sets.
class Launch : public testing::Test {
protected:
  void SetUp() override { clear(); }
  void TearDown() override { clear(); }
  void clear() {
    for (const char *name :
         {"RANK", "WORLD_SIZE", "LOCAL_RANK", "LOCAL_WORLD_SIZE", "PMI_RANK",
          "PMI_SIZE", "OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE",
          "OMPI_COMM_WORLD_LOCAL_RANK", "OMPI_COMM_WORLD_LOCAL_SIZE",
          "SLURM_PROCID", "SLURM_NTASKS", "SLURM_LOCALID",
          "SLURM_NTASKS_PER_NODE", "SLURM_STEP_ID", "SLURM_NODEID",
          "SLURM_STEP_TASKS_PER_NODE", "MPI_LOCALRANKID", "MPI_LOCALNRANKS"})
      unsetenv(name);
  }
  void set(const char *name, const char *value) { setenv(name, value, 1); }
};

} // namespace

TEST_F(Launch, NoLauncherMeansNoJob) { EXPECT_FALSE(detectLaunch()); }

TEST_F(Launch, FirstLauncherCounts) {
  set("OMPI_COMM_WORLD_RANK", "3");
  set("OMPI_COMM_WORLD_SIZE", "4");
  set("OMPI_COMM_WORLD_LOCAL_RANK", "1");
  set("OMPI_COMM_WORLD_LOCAL_SIZE", "2");
  set("SLURM_PROCID", "0");
  set("SLURM_NTASKS", "1");
  set("SLURM_STEP_ID", "0");
  auto place = detectLaunch();
  ASSERT_TRUE(place);
  EXPECT_EQ(place->rank, 3);
  EXPECT_EQ(place->size, 4);
  EXPECT_EQ(place->localRank, 1);
  EXPECT_EQ(place->localSize, 2);
}

// What sbatch gives its script, and salloc the shell that it starts by srun.
TEST_F(Launch, AnAllocationWithoutATaskIsNoLauncher) {
  set("SLURM_NTASKS", "4");
  EXPECT_FALSE(detectLaunch());
  set("SLURM_PROCID", "0");
  set("SLURM_LOCALID", "0");
  set("SLURM_NODEID", "0");
  EXPECT_FALSE(detectLaunch());
  set("SLURM_STEP_ID", "4294967290");
  EXPECT_FALSE(detectLaunch());
  set("SLURM_STEP_ID", "3");
  EXPECT_TRUE(detectLaunch());
  // 'srun --pty bash'
  set("SLURM_NTASKS", "1");
  EXPECT_FALSE(detectLaunch());
}

// Three machines, of which the last has fewer tasks; nobody asked for a number
// of tasks per machine.
TEST_F(Launch, SlurmCountsTasksByMachine) {
  set("SLURM_STEP_ID", "0");
  set("SLURM_NTASKS", "20");
  set("SLURM_STEP_TASKS_PER_NODE", "8(x2),4");
  for (auto [node, procid, tasks] :
       {std::tuple("0", "0", 8), {"1", "8", 8}, {"2", "16", 4}}) {
    set("SLURM_NODEID", node);
    set("SLURM_PROCID", procid);
    set("SLURM_LOCALID", "0");
    EXPECT_EQ(detectLaunch()->localSize, tasks);
  }
  for (const char *node : {"3", "2147483647"}) {
    set("SLURM_NODEID", node);
    EXPECT_EQ(messageOf([] { detectLaunch(); }),
              std::string("environment: SLURM_NODEID = ") + node +
                  ", but SLURM_STEP_TASKS_PER_NODE = '8(x2),4' has 3 machines");
  }
  set("SLURM_NODEID", "0");
  set("SLURM_LOCALID", "8");
  EXPECT_EQ(messageOf([] { detectLaunch(); }),
            "environment: SLURM_LOCALID = 8 is not below "
            "SLURM_STEP_TASKS_PER_NODE = 8");
  set("SLURM_LOCALID", "0");
  set("SLURM_NODEID", "1");
  for (const char *tasks :
       {"", "8", "8(", "8(x", "8(x2", "8(x0),8", "0,8", "8;8", "-1,8",
        "99999999999(x2)", "8(x99999999999),4"}) {
    set("SLURM_STEP_TASKS_PER_NODE", tasks);
    EXPECT_NE(messageOf([] { detectLaunch(); }), "") << tasks;
    // What follows this machine's entry has to be right too.
    set("SLURM_NODEID", "0");
    EXPECT_EQ(messageOf([] { detectLaunch(); }).empty(),
              *tasks == '8' && !tasks[1])
        << tasks;
    set("SLURM_NODEID", "1");
  }
}

// srun --mpi=pmi2 on two machines; only Slurm's variables say so.
TEST_F(Launch, SlurmSpeaksPmi) {
  for (const char *rank : {"PMI_RANK", "SLURM_PROCID"})
    set(rank, "2");
  for (const char *size : {"PMI_SIZE", "SLURM_NTASKS"})
    set(size, "4");
  set("SLURM_STEP_ID", "0");
  set("SLURM_LOCALID", "0");
  set("SLURM_NTASKS_PER_NODE", "2");
  auto place = detectLaunch();
  ASSERT_TRUE(place);
  EXPECT_STREQ(place->rankName, "SLURM_PROCID");
  EXPECT_EQ(place->localRank, 0);
  EXPECT_EQ(place->localSize, 2);
  // Another launcher in a Slurm job: its own variables count.
  set("MPI_LOCALRANKID", "1");
  EXPECT_STREQ(detectLaunch()->rankName, "PMI_RANK");
  unsetenv("MPI_LOCALRANKID");
  set("SLURM_PROCID", "1");
  EXPECT_STREQ(detectLaunch()->rankName, "PMI_RANK");
}

TEST_F(Launch, ContradictionsNameTheVariables) {
  auto error = [] { return messageOf([] { detectLaunch(); }); };
  set("RANK", "2");
  EXPECT_EQ(error(), "environment: RANK is set but WORLD_SIZE is not");
  set("WORLD_SIZE", "2");
  EXPECT_EQ(error(), "environment: RANK = 2 is not below WORLD_SIZE = 2");
  set("WORLD_SIZE", "many");
  EXPECT_EQ(error(), "environment: WORLD_SIZE = 'many' is no count");
}

TEST_F(Launch, WithoutMPIItSaysWhatToType) {
  set("SLURM_STEP_ID", "0");
  set("SLURM_PROCID", "1");
  set("SLURM_NTASKS", "4");
  EXPECT_EQ(explainMissingMPI(*detectLaunch(), 1),
            "the environment reports 4 ranks (SLURM_PROCID = 1, SLURM_NTASKS = "
            "4), MPI 1: their launcher does not support MPI, over which ranks "
            "on CPUs rendezvous; type 'mpirun -n 4 fsdp-run …', under Slurm "
            "'srun --mpi=pmix -n 4 fsdp-run …', or unset SLURM_PROCID and "
            "SLURM_NTASKS and type 'fsdp-run … -n 4'");
}

TEST_F(Launch, MPIMayKnowMoreThanTheEnvironment) {
  EXPECT_EQ(explainMissingMPI({0, 1, 0, 1}, 2),
            "MPI reports 2 processes, but no variable states the rank of this "
            "one; start them with mpirun, srun --mpi=pmix or fsdp-run -n 2");
}

TEST(Variables, HoldNumbers) {
  auto error = [](const char *name, const char *value) {
    setenv(name, value, 1);
    std::string message = messageOf([] { checkVariables(); });
    unsetenv(name);
    return message;
  };
  EXPECT_EQ(error("FSDP_TIMEOUT", "12.5"), "");
  EXPECT_EQ(error("FSDP_HEARTBEAT", "0"), "");
  EXPECT_EQ(error("FSDP_FILE_TIMEOUT", "0"), "");
  for (const char *value : {"abc", "", "0", "-3", "5s", "nan", "inf"})
    EXPECT_EQ(error("FSDP_TIMEOUT", value),
              std::string("environment: FSDP_TIMEOUT = '") + value +
                  "' is no number of seconds above 0");
  EXPECT_EQ(error("FSDP_JOIN_TIMEOUT", "0"),
            "environment: FSDP_JOIN_TIMEOUT = '0' is no number of seconds "
            "above 0");
  EXPECT_EQ(error("FSDP_SHARE_GPU", "yes"),
            "environment: FSDP_SHARE_GPU = 'yes' is no choice: 0 or 1");
  EXPECT_EQ(error("FSDP_HEARTBEAT", "-1"),
            "environment: FSDP_HEARTBEAT = '-1' is no number of seconds");
  EXPECT_EQ(error("FSDP_HEARTBEAT", "0.04"),
            "environment: FSDP_HEARTBEAT = '0.04' is no number of seconds from "
            "0.1 on (0: no limit)");
  EXPECT_EQ(error("FSDP_SHARED_MEMORY", "yes"),
            "environment: FSDP_SHARED_MEMORY = 'yes' is no choice: 0 or 1");
  EXPECT_EQ(error("FSDP_NATIVE_BF16", "2"),
            "environment: FSDP_NATIVE_BF16 = '2' is no choice: 0 or 1");
}

TEST(ProcessState, TellsStoppedFromRunning) {
  pid_t child = fork();
  if (child == 0) {
    std::raise(SIGSTOP);
    _exit(0);
  }
  EXPECT_FALSE(isStopped(processState(getpid())));
  int status;
  ASSERT_EQ(waitpid(child, &status, WUNTRACED), child);
  EXPECT_TRUE(isStopped(processState(child)));
  kill(child, SIGKILL);
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_EQ(processState(child).state, 0);
}

namespace {

/// Two pipes with a relay between them.
class Relay : public testing::Test {
protected:
  Relay() {
    EXPECT_EQ(pipe(in), 0);
    EXPECT_EQ(pipe(out), 0);
    std::signal(SIGPIPE, SIG_IGN);
  }
  ~Relay() override {
    std::signal(SIGPIPE, SIG_DFL);
    close(out[1]);
  }
  void write(const std::string &text) {
    ASSERT_EQ(::write(in[1], text.data(), text.size()), ssize_t(text.size()));
  }

  int in[2], out[2];
};

} // namespace

TEST_F(Relay, PassesEverythingOn) {
  OutputRelay relay(in[0], out[1]);
  std::string text(10000, 'x');
  write(text);
  EXPECT_EQ(relay.awaited().fd, in[0]);
  relay.move();
  EXPECT_EQ(relay.awaited().fd, out[1]);
  close(in[1]);
  relay.finish();
  EXPECT_EQ(relay.error(), 0);
  EXPECT_EQ(relay.awaited().fd, -1);
  std::string read(20000, '\0');
  EXPECT_EQ(::read(out[0], read.data(), read.size()), 10000);
  close(out[0]);
}

// The ranks must not wait for a reader that has gone.
TEST_F(Relay, GoesOnWithoutAReader) {
  OutputRelay relay(in[0], out[1]);
  close(out[0]);
  for (int i = 0; i < 3; ++i) {
    write("a line\n");
    relay.finish();
    EXPECT_EQ(relay.error(), EPIPE);
    EXPECT_EQ(relay.awaited().fd, in[0]);
  }
  close(in[1]);
}

TEST(JobOutput, TheFirstRankThatSpoke) {
  JobOutput output;
  EXPECT_TRUE(output.takeLine("a warning of a library"));
  EXPECT_TRUE(output.takeLine("fsdp-run: warning: of a rank"));
  EXPECT_FALSE(output.takeLine("fsdp: rank 1: the text is gone"));
  EXPECT_FALSE(output.takeLine("fsdp: rank 0: the text is gone"));
  EXPECT_EQ(output.failure("rank 1", 1), "rank 1: the text is gone");
}

TEST(JobOutput, ARankThatSaysNothing) {
  EXPECT_EQ(JobOutput().failure("rank 1", 5),
            "rank 1 ended with status 5 and no message; the whole job was "
            "stopped");
}
