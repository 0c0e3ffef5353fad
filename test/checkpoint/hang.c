/* Preloaded into a run: one call to the file system never comes back, as where a
 * file server is gone.
 *
 * HANG_CALL: open, write, fsync or rename; HANG_FILE: a part of the file's path,
 * or its end with $ after it; HANG_RANK: which rank (RANK) it is. With
 * HANG_SECONDS it comes back after so many. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static int is(const char *variable, const char *value) {
  const char *text = getenv(variable);
  return text && value && strcmp(text, value) == 0;
}

static int hasPart(const char *path, const char *part) {
  size_t length = strlen(part), all = strlen(path);
  if (length == 0 || part[length - 1] != '$')
    return strstr(path, part) != NULL;
  return all >= --length && strncmp(path + all - length, part, length) == 0;
}

static void hang(const char *call, const char *path) {
  const char *part = getenv("HANG_FILE");
  if (!is("HANG_CALL", call) || !part || !hasPart(path, part) ||
      !is("HANG_RANK", getenv("RANK")))
    return;
  const char *seconds = getenv("HANG_SECONDS");
  if (seconds) {
    sleep((unsigned)atoi(seconds));
    return;
  }
  for (;;)
    pause();
}

static void hangOf(const char *call, int file) {
  char link[32], path[4096] = "";
  snprintf(link, sizeof link, "/proc/self/fd/%d", file);
  if (readlink(link, path, sizeof path - 1) > 0)
    hang(call, path);
}

static void *next(const char *name) { return dlsym(RTLD_NEXT, name); }

static int openNext(const char *name, const char *path, int flags, int mode) {
  int (*call)(const char *, int, ...) = next(name);
  hang("open", path);
  return call(path, flags, mode);
}

static int modeOf(int flags, va_list more) {
  return flags & (O_CREAT | O_TMPFILE) ? va_arg(more, int) : 0;
}

int open(const char *path, int flags, ...) {
  va_list more;
  va_start(more, flags);
  int mode = modeOf(flags, more);
  va_end(more);
  return openNext("open", path, flags, mode);
}

int open64(const char *path, int flags, ...) {
  va_list more;
  va_start(more, flags);
  int mode = modeOf(flags, more);
  va_end(more);
  return openNext("open64", path, flags, mode);
}

int fsync(int file) {
  int (*call)(int) = next("fsync");
  hangOf("fsync", file);
  return call(file);
}

ssize_t write(int file, const void *from, size_t count) {
  ssize_t (*call)(int, const void *, size_t) = next("write");
  hangOf("write", file);
  return call(file, from, count);
}

int rename(const char *from, const char *to) {
  int (*call)(const char *, const char *) = next("rename");
  hang("rename", from);
  return call(from, to);
}
