// Runs the case allreduce with MPI, between processes of one machine. mpi_allreduce.py starts it.
//
//   mpi_allreduce OPERATION ROUNDS BYTES…
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

enum { kTurns = 5 };

typedef struct {
  const char* operation;
  long rounds;  // rounds per turn; 0 for as many as take about 0.2 s
  int rank, ranks;
} Options;

static double CpuSeconds(void) {
  struct rusage usage;
  getrusage(RUSAGE_SELF, &usage);
  return usage.ru_utime.tv_sec + usage.ru_utime.tv_usec * 1e-6 + usage.ru_stime.tv_sec +
         usage.ru_stime.tv_usec * 1e-6;
}

static int Compare(const void* a, const void* b) {
  const double x = *(const double*)a, y = *(const double*)b;
  return (x > y) - (x < y);
}

static void Run(const Options* options, float* values, int count) {
  const char* name = options->operation;
  const int part = count / options->ranks;
  const MPI_Comm world = MPI_COMM_WORLD;
  if (strcmp(name, "all_reduce") == 0) {
    MPI_Allreduce(MPI_IN_PLACE, values, count, MPI_FLOAT, MPI_SUM, world);
  } else if (strcmp(name, "reduce_scatter") == 0) {
    MPI_Reduce_scatter_block(MPI_IN_PLACE, values, part, MPI_FLOAT, MPI_SUM, world);
  } else if (strcmp(name, "all_gather") == 0) {
    MPI_Allgather(MPI_IN_PLACE, 0, MPI_FLOAT, values, part, MPI_FLOAT, world);
  } else if (strcmp(name, "broadcast") == 0) {
    MPI_Bcast(values, count, MPI_FLOAT, 0, world);
  } else if (strcmp(name, "reduce") == 0) {
    MPI_Reduce(options->rank == 0 ? MPI_IN_PLACE : values, values, count, MPI_FLOAT, MPI_SUM, 0, world);
  } else if (strcmp(name, "all_to_all") == 0) {
    MPI_Alltoall(MPI_IN_PLACE, part, MPI_FLOAT, values, part, MPI_FLOAT, world);
  } else if (strcmp(name, "barrier") == 0) {
    MPI_Barrier(world);
  } else {
    fprintf(stderr, "unknown operation %s\n", name);
    MPI_Abort(world, 2);
  }
}

// Sets `seconds` to the average time that one operation takes on this rank, and returns the CPU
// time of all operations.
static double Turn(const Options* options, float* values, int count, long rounds, double* seconds) {
  MPI_Barrier(MPI_COMM_WORLD);
  const double start = MPI_Wtime(), cpu = CpuSeconds();
  for (long i = 0; i < rounds; ++i) Run(options, values, count);
  const double used = CpuSeconds() - cpu;
  *seconds = (MPI_Wtime() - start) / rounds;
  return used;
}

// Prints the size, the rounds per turn, the time of an operation on the slowest rank, and the CPU
// time of all ranks.
static void Measure(const Options* options, long bytes) {
  const long unit = (long)sizeof(float) * options->ranks;
  bytes = bytes < unit ? unit : bytes / unit * unit;
  const int count = (int)(bytes / (long)sizeof(float));
  float* values = calloc((size_t)count, sizeof(float));
  if (values == NULL) MPI_Abort(MPI_COMM_WORLD, 1);
  long rounds = options->rounds;
  if (rounds == 0) {
    rounds = (200L << 20) / (bytes + 1);
    rounds = rounds < 4 ? 4 : rounds > 4000 ? 4000 : rounds;
  }
  double turns[kTurns], cpu = 0, unused;
  Turn(options, values, count, rounds < 10 ? rounds : 10, &unused);
  for (int i = 0; i < kTurns; ++i) cpu += Turn(options, values, count, rounds, &turns[i]);
  qsort(turns, kTurns, sizeof turns[0], Compare);
  double slowest, all;
  MPI_Reduce(&turns[kTurns / 2], &slowest, 1, MPI_DOUBLE, MPI_MAX, 0, MPI_COMM_WORLD);
  MPI_Reduce(&cpu, &all, 1, MPI_DOUBLE, MPI_SUM, 0, MPI_COMM_WORLD);
  if (options->rank == 0) {
    printf("%ld %ld %.9g %.9g\n", bytes, rounds * kTurns, slowest, all);
    fflush(stdout);
  }
  free(values);
}

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  Options options = {.operation = argv[1], .rounds = atol(argv[2])};
  MPI_Comm_rank(MPI_COMM_WORLD, &options.rank);
  MPI_Comm_size(MPI_COMM_WORLD, &options.ranks);
  for (int i = 3; i < argc; ++i) Measure(&options, atol(argv[i]));
  MPI_Finalize();
  return 0;
}
