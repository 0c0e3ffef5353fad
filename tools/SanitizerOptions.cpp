//===- SanitizerOptions.cpp - What the sanitizers leave out, and why ------===//
//
// Linked into every program of a build with FSDP_SANITIZE, so that a program
// needs no environment to run under the sanitizers.
//
//===----------------------------------------------------------------------===//

extern "C" {

// LLVM's bump allocators poison their slabs where they are compiled with the
// address sanitizer. Their code is inline: slabs made by ours would be
// poisoned, and libLLVM, which is not sanitized, hands them out unpoisoned.
const char *__asan_default_options() {
  return "allow_user_poisoning=0:detect_stack_use_after_return=1:"
         "strict_string_checks=1";
}

const char *__ubsan_default_options() {
  return "halt_on_error=1:print_stacktrace=1";
}

// Open MPI and what it loads keep tables until the process ends; stacks of
// vasprintf in them end there, because they have no frame pointers.
const char *__lsan_default_suppressions() {
  return "leak:libmpi.so\n"
         "leak:libopen-pal.so\n"
         "leak:libopen-rte.so\n"
         "leak:mca_\n"
         "leak:libpmix.so\n"
         "leak:libevent\n"
         "leak:libhwloc\n"
         "leak:vasprintf\n";
}

const char *__lsan_default_options() { return "print_suppressions=0"; }

// Libraries stay loaded: Open MPI unloads its components before leaks are
// looked for, and those of an unloaded library have no name to suppress.
int dlclose(void *) { return 0; }

} // extern "C"
