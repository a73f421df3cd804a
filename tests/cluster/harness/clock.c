// A library that is preloaded into a program, and replaces the program's clocks with clocks that a
// test sets. The file that TFJOB_TEST_CLOCK names contains two doubles: the error of the wall clock
// in seconds, which may change at any time, and the speed at which time passes, which may not
// change. Only the wall clock jumps, as on a machine whose clock is set. Sleeps and kernel timers
// use the real time.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

static const volatile double* control;  // offset, speed
static double start;                    // of CLOCK_MONOTONIC

static double Real(clockid_t id) {
  struct timespec time;
  syscall(SYS_clock_gettime, id, &time);
  return (double)time.tv_sec + (double)time.tv_nsec / 1e9;
}

__attribute__((constructor)) static void Open(void) {
  const char* path = getenv("TFJOB_TEST_CLOCK");
  const int file = path == NULL ? -1 : open(path, O_RDONLY | O_CLOEXEC);
  if (file < 0) return;
  void* bytes = mmap(NULL, 2 * sizeof(double), PROT_READ, MAP_SHARED, file, 0);
  close(file);
  if (bytes == MAP_FAILED) return;
  start = Real(CLOCK_MONOTONIC);
  control = bytes;
}

static int IsWall(clockid_t id) { return id == CLOCK_REALTIME || id == CLOCK_REALTIME_COARSE; }
static int IsSteady(clockid_t id) {
  return id == CLOCK_MONOTONIC || id == CLOCK_MONOTONIC_COARSE || id == CLOCK_MONOTONIC_RAW || id == CLOCK_BOOTTIME;
}

// Returns how far the program's clock is ahead after `passed` real seconds.
static double Ahead(clockid_t id, double passed) {
  return passed * (control[1] - 1) + (IsWall(id) ? control[0] : 0);
}

static struct timespec ToTimespec(double seconds) {
  struct timespec time = {(time_t)seconds, 0};
  time.tv_nsec = (long)((seconds - (double)time.tv_sec) * 1e9);
  return time;
}

int clock_gettime(clockid_t id, struct timespec* time) {
  const long result = syscall(SYS_clock_gettime, id, time);
  if (result == 0 && control != NULL && (IsWall(id) || IsSteady(id))) {
    *time = ToTimespec(Real(id) + Ahead(id, Real(CLOCK_MONOTONIC) - start));
  }
  return (int)result;
}

int gettimeofday(struct timeval* restrict time, void* restrict zone) {
  (void)zone;
  struct timespec now;
  clock_gettime(CLOCK_REALTIME, &now);
  time->tv_sec = now.tv_sec;
  time->tv_usec = now.tv_nsec / 1000;
  return 0;
}

time_t time(time_t* result) {
  struct timespec now;
  clock_gettime(CLOCK_REALTIME, &now);
  if (result != NULL) *result = now.tv_sec;
  return now.tv_sec;
}

// Converts `until`, a time on the program's clock, to real time. A later jump of the wall clock
// does not change the result.
static struct timespec RealTime(clockid_t id, const struct timespec* until) {
  if (control == NULL) return *until;
  const double wanted = (double)until->tv_sec + (double)until->tv_nsec / 1e9;
  const double passed = Real(CLOCK_MONOTONIC) - start;
  const double left = (wanted - Real(id) - Ahead(id, passed)) / control[1];
  return ToTimespec(Real(id) + left);
}

int pthread_cond_clockwait(pthread_cond_t* restrict condition, pthread_mutex_t* restrict mutex, clockid_t id,
                           const struct timespec* restrict until) {
  static int (*next)(pthread_cond_t*, pthread_mutex_t*, clockid_t, const struct timespec*);
  if (next == NULL) next = dlsym(RTLD_NEXT, "pthread_cond_clockwait");
  const struct timespec real = RealTime(id, until);
  return next(condition, mutex, id, &real);
}

// The value of `until` shows which clock the condition uses, because no machine runs for thirty
// years without a restart.
int pthread_cond_timedwait(pthread_cond_t* restrict condition, pthread_mutex_t* restrict mutex,
                           const struct timespec* restrict until) {
  return pthread_cond_clockwait(condition, mutex, until->tv_sec < 1000000000 ? CLOCK_MONOTONIC : CLOCK_REALTIME, until);
}
