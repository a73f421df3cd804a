// The first process of every pod's sandbox: keeps its namespaces alive and reaps orphans.
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

static void Leave(int signal) {
  (void)signal;
  _exit(0);
}

static void Reap(int signal) {
  (void)signal;
  while (waitpid(-1, 0, WNOHANG) > 0) {
  }
}

int main(void) {
  signal(SIGINT, Leave);
  signal(SIGTERM, Leave);
  signal(SIGCHLD, Reap);
  for (;;) pause();
}
